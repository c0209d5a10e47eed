#!/usr/bin/env python3
"""A script as people have it for the reference suite: its own loop and arguments, and our clock."""

import argparse

import torch
from torch.nn.functional import smooth_l1_loss

from cotenant.chrono import MultiStageChrono

parser = argparse.ArgumentParser(description="A line through random points.")
parser.add_argument("--repeat", type=int, default=100)
parser.add_argument("--number", type=int, default=10)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--lr", type=float, default=0.01)
args = parser.parse_args()
torch.manual_seed(args.seed)
chrono = MultiStageChrono(name="polynome", skip_obs=2)
model = torch.nn.Linear(4, 1)

for _ in range(args.repeat):
    if chrono.over:
        break
    with chrono.time("train", items=args.number * args.batch_size):
        for _batch in range(args.number):
            x = torch.randn(args.batch_size, 4)
            model.zero_grad()
            loss = smooth_l1_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            for parameter in model.parameters():
                parameter.data.add_(-args.lr * parameter.grad.data)

chrono.report()
