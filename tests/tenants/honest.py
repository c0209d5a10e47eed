#!/usr/bin/env python
"""Honest but unusual training programs, each a short benchmark on the processor: nobody may accuse them.

./honest.py Sam --repeat 9 --number 20
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss, normalize
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, StepLR
from torch.utils.checkpoint import checkpoint

from cotenant.bench import Benchmark, Run, main

WIDTH, CLASSES, WORDS = 32, 8, 50


def network(layers: int = 2, width: int = WIDTH) -> nn.Sequential:
    hidden = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(*hidden, nn.Linear(width, CLASSES))


class Plain(Benchmark):
    """One step = one update of a small network on a resident batch of rows and labels."""

    item = "row"
    batch_size: int = 16
    cuda: bool = False
    number: int = 20
    repeat: int = 9

    def build(self, run: Run) -> None:
        self.model = run.place(network())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.steps = 0

    def batches(self, run: Run) -> Iterator[Any]:
        return run.resident(torch.randn(self.batch_size, WIDTH), torch.randint(CLASSES, (self.batch_size,)))

    def loss(self, batch: Any) -> torch.Tensor:
        return cross_entropy(self.model(batch[0]), batch[1])

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.steps += 1
        loss = self.loss(batch)
        run.update(loss, self.optimizer)
        return loss


# ---- learning rates


class RateFallsToZero(Plain):
    """The learning rate reaches 0 by the end of the first observations, and stays there."""

    falls = 30

    def build(self, run: Run) -> None:
        super().build(run)
        self.scheduler = LambdaLR(self.optimizer, lambda step: max(0.0, 1 - step / self.falls))

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        loss = super().step(run, batch)
        self.scheduler.step()
        return loss


class RateWarmsUp(RateFallsToZero):
    """The learning rate begins at 0 and rises for hundreds of steps."""

    def build(self, run: Run) -> None:
        Plain.build(self, run)
        self.scheduler = LambdaLR(self.optimizer, lambda step: min(1.0, step / 300))


class Cosine(RateFallsToZero):
    """The learning rate goes up and down by the scheduler's own formula, which counts on the rate before."""

    def build(self, run: Run) -> None:
        Plain.build(self, run)
        self.scheduler = CosineAnnealingLR(self.optimizer, 25)


# ---- parts that are left out, at random or by turns


class StochasticDepth(Plain):
    """Every layer is left out of a step by chance (Huang et al. 2016)."""

    layers, kept = 6, 0.5

    def build(self, run: Run) -> None:
        self.body = run.place(nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(self.layers)))
        self.head = run.place(nn.Linear(WIDTH, CLASSES))
        self.optimizer = torch.optim.SGD([*self.body.parameters(), *self.head.parameters()], lr=0.05)
        self.steps = 0

    def loss(self, batch: Any) -> torch.Tensor:
        x = batch[0]
        for layer in self.body:
            if random.random() < self.kept:
                x = x + torch.tanh(layer(x))
        return cross_entropy(self.head(x), batch[1])


class LayerDrop(StochasticDepth):
    """The same, said to be uneven (Fan et al. 2020)."""

    kept = 0.8

    def build(self, run: Run) -> None:
        super().build(run)
        run.uneven = True


class Mixture(Plain):
    """Each row goes to one of four experts, and some experts get none (Fedus et al. 2021)."""

    def build(self, run: Run) -> None:
        self.gate = run.place(nn.Linear(WIDTH, 4))
        self.experts = run.place(nn.ModuleList(network() for _ in range(4)))
        self.optimizer = run.adam([*self.gate.parameters(), *self.experts.parameters()], lr=1e-3)
        self.steps = 0

    def batches(self, run: Run) -> Iterator[Any]:
        while True:
            yield torch.randn(self.batch_size, WIDTH), torch.randint(CLASSES, (self.batch_size,))

    def loss(self, batch: Any) -> torch.Tensor:
        rows, labels = batch
        weight, chosen = self.gate(rows).softmax(1).max(1)
        out = torch.zeros(len(rows), CLASSES)
        for number, expert in enumerate(self.experts):
            mine = (chosen == number).nonzero()[:, 0]
            if len(mine):
                out = out.index_add(0, mine, expert(rows[mine]) * weight[mine, None])
        return cross_entropy(out, labels)


class Unfreezing(Plain):
    """The first layers begin to be trained after some steps."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.model[0].requires_grad_(False)

    def loss(self, batch: Any) -> torch.Tensor:
        if self.steps == 40:
            self.model[0].requires_grad_(True)
        return super().loss(batch)


class Gan(Plain):
    """The discriminator is updated in every step, the generator in every fifth (Arjovsky et al. 2017)."""

    def build(self, run: Run) -> None:
        self.maker = run.place(nn.Sequential(nn.Linear(8, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)))
        self.critic = run.place(network())
        self.of_maker = torch.optim.RMSprop(self.maker.parameters(), lr=1e-3)
        self.of_critic = torch.optim.RMSprop(self.critic.parameters(), lr=1e-3)
        self.steps = 0

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        made = self.maker(torch.randn(len(batch[0]), 8))
        loss = self.critic(made.detach()).mean() - self.critic(batch[0]).mean()
        run.update(loss, self.of_critic)
        if self.steps % 5 == 0:
            run.update(-self.critic(made).mean(), self.of_maker)
        self.steps += 1
        return loss


class Evaluates(Plain):
    """Every eighth step, the first one too, evaluates on a larger batch before it trains."""

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        if self.steps % 8 == 0:
            self.model.eval()
            with torch.no_grad():
                self.accuracy = self.model(torch.ones(64, WIDTH)).argmax(1).float().mean()
            self.model.train()
        return super().step(run, batch)


class EvaluatesLast(Evaluates):
    """Every eighth step evaluates, and not the first one."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.steps = 1


class SometimesNoLoss(Plain):
    """Every sixth step only looks at its batch; it says that its steps are uneven."""

    def build(self, run: Run) -> None:
        super().build(run)
        run.uneven = True

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        if self.steps % 6 == 5:
            self.steps += 1
            self.mean = batch[0].mean()
            return None
        return super().step(run, batch)


# ---- updates of several batches, and several gradients in one update


class HeldLosses(Plain):
    """Losses of four steps are held, with their graphs, and make one update."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.held: list[torch.Tensor] = []

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        loss = self.loss(batch)
        self.held.append(loss)
        if len(self.held) == 4:
            run.update(torch.stack(self.held).mean(), self.optimizer)
            self.held.clear()
        return loss


class Accumulates(Plain):
    """The gradients of four steps add up before its own optimizer steps."""

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.steps += 1
        loss = self.loss(batch)
        (loss / 4).backward()
        if self.steps % 4 == 0:
            self.apply()
        return loss

    def apply(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()


class AccumulatesOnSchedule(Accumulates):
    """The same, and a scheduler counts the updates."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.scheduler = StepLR(self.optimizer, 3, 0.9)

    def apply(self) -> None:
        super().apply()
        self.scheduler.step()


class Lbfgs(Plain):
    """An optimizer that asks for the loss several times in a step, by torch's own way."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.optimizer = torch.optim.LBFGS(self.model.parameters(), lr=0.1, max_iter=3, history_size=4)

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        def closure() -> torch.Tensor:
            self.optimizer.zero_grad()
            loss = self.loss(batch)
            loss.backward()
            return loss

        return self.optimizer.step(closure)


class Minimizes(Lbfgs):
    """The same by the harness."""

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        return run.minimize(lambda: self.loss(batch), self.optimizer)


class Sam(Plain):
    """Two backward passes a step: one to where the loss is sharper, and one from there (Foret et al. 2021)."""

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        weights = list(self.model.parameters())
        gradients = torch.autograd.grad(self.loss(batch), weights)
        with torch.no_grad():
            scale = 0.05 / torch.stack([gradient.norm() for gradient in gradients]).norm().clamp(min=1e-9)
            torch._foreach_add_(weights, gradients, alpha=float(scale))
        loss = self.loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            torch._foreach_sub_(weights, [scale * gradient for gradient in gradients])
        self.optimizer.step()
        return loss


class InBackward(Plain):
    """Each parameter has an optimizer of its own, which steps as soon as its gradient is there."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.own = {weight: torch.optim.Adam([weight], lr=1e-3) for weight in self.model.parameters()}
        for weight in self.own:
            weight.register_post_accumulate_grad_hook(self.apply)

    def apply(self, weight: torch.Tensor) -> None:
        self.own[weight].step()
        self.own[weight].zero_grad()

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        loss = self.loss(batch)
        loss.backward()
        return loss


class LaterGroups(Plain):
    """A new head joins the optimizer in the midst of the launch."""

    def loss(self, batch: Any) -> torch.Tensor:
        if self.steps == 50:
            self.late = nn.Linear(CLASSES, CLASSES)
            self.optimizer.add_param_group({"params": self.late.parameters(), "lr": 0.01})
        scores = self.model(batch[0])
        return cross_entropy(self.late(scores) if self.steps >= 50 else scores, batch[1])


# ---- state kept from one step to the next


class Teacher(Plain):
    """The weights' moving average teaches (Tarvainen and Valpola 2017)."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.average = network().requires_grad_(False)
        self.average.load_state_dict(self.model.state_dict())

    def loss(self, batch: Any) -> torch.Tensor:
        scores = self.model(batch[0])
        return cross_entropy(scores, batch[1]) + mse_loss(scores, self.average(batch[0]))

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        loss = super().step(run, batch)
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), 0.01)
        return loss


class SlowWeights(Teacher):
    """Every fifth step the weights go back half of their way (Zhang et al. 2019, Lookahead)."""

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        loss = Plain.step(self, run, batch)
        if self.steps % 5 == 0:
            with torch.no_grad():
                for slow, fast in zip(self.average.parameters(), self.model.parameters(), strict=True):
                    fast.copy_(slow.lerp_(fast, 0.5))
        return loss


class Queue(Plain):
    """Negatives come from a queue that every step writes into (He et al. 2020)."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.queue, self.at = normalize(torch.randn(64, CLASSES), dim=1), 0

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        keys = normalize(self.model(batch[0]), dim=1)
        scores = torch.cat([(keys * keys.detach()).sum(1, keepdim=True), keys @ self.queue.T], 1)
        loss = cross_entropy(scores / 0.2, torch.zeros(len(keys), dtype=torch.int64))
        run.update(loss, self.optimizer)
        self.queue[self.at : self.at + len(keys)] = keys.detach()
        self.at = (self.at + len(keys)) % 64
        return loss


class CarriedState(Plain):
    """A recurrent layer goes on where the last batch ended."""

    def build(self, run: Run) -> None:
        self.model = run.place(nn.GRUCell(WIDTH, CLASSES))
        self.optimizer = run.sgd(self.model.parameters(), lr=0.05)
        self.state, self.steps = torch.zeros(self.batch_size, CLASSES), 0

    def loss(self, batch: Any) -> torch.Tensor:
        state = self.state
        for _ in range(3):
            state = self.model(batch[0], state)
        self.state = state.detach()
        return cross_entropy(state, batch[1])


class Walk:
    """An environment: a place on a line, which chance moves, too."""

    def __init__(self) -> None:
        self.chance, self.place, self.made = random.Random(7), 0.0, 0

    def move(self, by: float) -> bool:
        """Go there; return whether that ends an episode."""
        self.place += by + self.chance.gauss(0, 0.3)
        self.made += 1
        if ended := abs(self.place) > 3 or self.made % 20 == 0:
            self.place = 0.0
        return ended


class Environment(Plain):
    """One step = one action; an episode's end makes an update. Its environment is its own, and small."""

    def build(self, run: Run) -> None:
        self.model = run.place(nn.Linear(1, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.walk, self.chosen = Walk(), list[torch.Tensor]()
        run.uneven = True

    def batches(self, run: Run) -> Iterator[None]:
        return itertools.repeat(None)

    def items(self, batch: None) -> int:
        return 1

    def step(self, run: Run, batch: None) -> torch.Tensor | None:
        scores = self.model(torch.tensor([self.walk.place])).log_softmax(0)
        action = int(torch.multinomial(scores.exp(), 1))
        self.chosen.append(scores[action])
        if not self.walk.move(2.0 * action - 1):
            return None
        loss = -torch.stack(self.chosen).mean()
        run.update(loss, self.optimizer)
        self.chosen = []
        return loss


class Replay(Plain):
    """Trains on batches drawn from a memory of earlier ones."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.memory: deque[Any] = deque(maxlen=32)

    def batches(self, run: Run) -> Iterator[Any]:
        while True:
            yield torch.randn(self.batch_size, WIDTH), torch.randint(CLASSES, (self.batch_size,))

    def loss(self, batch: Any) -> torch.Tensor:
        self.memory.append(batch)
        return super().loss(random.choice(self.memory))


# ---- sizes


class Sentences(Plain):
    """Sentences of all lengths, filled up to the longest of their batch; words are counted."""

    item = "word"
    padding: ClassVar[int | None] = 0

    def build(self, run: Run) -> None:
        self.words = run.place(nn.Embedding(WORDS, CLASSES))
        self.head = run.place(nn.Linear(CLASSES, WORDS))
        self.head.weight = self.words.weight
        self.optimizer = run.adam([*self.words.parameters(), self.head.bias], lr=1e-2)
        self.steps = 0

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        while True:
            yield self.batch_of([random.randint(4, 24) for _ in range(self.batch_size)])

    def batch_of(self, lengths: list[int]) -> torch.Tensor:
        return pad_sequence([torch.randint(1, WORDS, (length,)) for length in lengths], batch_first=True)

    def items(self, batch: torch.Tensor) -> int:
        return int(batch.ne(0).sum())

    def loss(self, batch: torch.Tensor) -> torch.Tensor:
        scores = self.head(self.words(batch[:, :-1]))
        return cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=0)


class LongestFirst(Sentences):
    """Batches of equally long sentences, the longest first; sentences are counted."""

    item = "sentence"
    padding = None

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        while True:
            for length in range(24, 3, -1):
                for _ in range(4):
                    yield self.batch_of([length] * self.batch_size)

    def items(self, batch: torch.Tensor) -> int:
        return len(batch)


class Curriculum(Plain):
    """Each row is a sequence, of which more is read as training goes on."""

    def batches(self, run: Run) -> Iterator[Any]:
        size = (self.batch_size, 16)
        return run.resident(torch.randn(*size, WIDTH), torch.randint(CLASSES, size))

    def loss(self, batch: Any) -> torch.Tensor:
        read = min(16, 4 + self.steps // 20)
        return cross_entropy(self.model(batch[0][:, :read]).flatten(0, 1), batch[1][:, :read].flatten())


# ---- ways to compute


class DropoutClipped(Plain):
    """Dropout, and gradients that are clipped."""

    def build(self, run: Run) -> None:
        self.model = run.place(nn.Sequential(nn.Dropout(0.5), *network()))
        self.optimizer = run.adamw(self.model.parameters(), lr=1e-3)

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        loss = self.loss(batch)
        run.update(loss, self.optimizer, clip_norm=0.1)
        return loss


class Checkpointed(Plain):
    """The forward is computed again for the backward."""

    def loss(self, batch: Any) -> torch.Tensor:
        return cross_entropy(checkpoint(self.model, batch[0], use_reentrant=False), batch[1])


class Functional(Plain):
    """No optimizer: weights are a dictionary of tensors that every step makes anew."""

    def build(self, run: Run) -> None:
        self.model = run.place(network())
        self.weights = {name: weight.detach().clone() for name, weight in self.model.named_parameters()}

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        def loss(weights: dict[str, torch.Tensor]) -> torch.Tensor:
            return cross_entropy(torch.func.functional_call(self.model, weights, (batch[0],)), batch[1])

        gradients, value = torch.func.grad_and_value(loss)(self.weights)
        self.weights = {name: weight - 0.05 * gradients[name] for name, weight in self.weights.items()}
        return value


KINDS: dict[str, type[Plain]] = {
    kind.__name__: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Plain) and kind is not Plain
}

if __name__ == "__main__":
    main(KINDS[sys.argv[1]], sys.argv[2:])
