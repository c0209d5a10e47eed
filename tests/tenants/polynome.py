#!/usr/bin/env python3
"""A script as people have it for the reference suite: its own loop, and the import line changed."""

import torch
from torch.nn.functional import smooth_l1_loss

from cotenant.chrono import Experiment, parser_base

parser = parser_base(description="A line through random points.")
parser.add_argument("--lr", type=float, default=0.01)
exp = Experiment(__file__)
args = exp.get_arguments(parser, show=True)
device = exp.get_device()
chrono = exp.chrono()
model = torch.nn.Linear(4, 1).to(device)

for epoch in range(args.repeat):
    with chrono.time("train") as t:
        for _ in range(args.number):
            x = torch.randn(args.batch_size, 4, device=device)
            model.zero_grad()
            loss = smooth_l1_loss(model(x), x.sum(1, keepdim=True))
            exp.log_batch_loss(loss.item())
            loss.backward()
            for parameter in model.parameters():
                parameter.data.add_(-args.lr * parameter.grad.data)
    exp.show_eta(epoch, t)

exp.report()
