"""NeuMF: neural collaborative filtering on MovieLens 20M (He et al. 2017, arXiv:1708.05031).

python main.py --batch-size 2048 --repeat 25 --number 100 [workspace/data/ml-20m]
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Distributed, MissingDataError, Run, flag, main, positional
from cotenant.errors import CotenantError

USERS, ITEMS = 138_493, 26_744
NEGATIVES = 4  # items drawn for each one that its user rated
POPULAR = 300  # half of all ratings go to so many items
DRAWN_AT_ONCE = 2**17  # samples
PIECE_BYTES, LARGEST_ID = 2**25, 10**7  # of the file

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class NeuMF(nn.Module):
    """A product of factors (GMF) beside a network of dense layers (MLP), both on their own embeddings."""

    def __init__(self, factors: int, layers: tuple[int, ...], dropout: float = 0.0) -> None:
        super().__init__()
        self.widths = (factors, layers[0] // 2)
        # One table holds a user's (an item's) embeddings of both parts: half the look-ups, the same numbers.
        self.user = nn.Embedding(USERS, sum(self.widths))
        self.item = nn.Embedding(ITEMS, sum(self.widths))
        dense = [(nn.Linear(*ends), nn.ReLU(inplace=True)) for ends in itertools.pairwise(layers)]
        if dropout:
            dense = [(*layer, nn.Dropout(dropout)) for layer in dense]
        self.mlp = nn.Sequential(*itertools.chain(*dense))
        self.score = nn.Linear(factors + layers[-1], 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.01)

    def forward(self, user_b: torch.Tensor, item_b: torch.Tensor) -> torch.Tensor:
        """Return the logit of each user and item, (b)."""
        user_bf, user_bm = self.user(user_b).split(self.widths, dim=1)
        item_bf, item_bm = self.item(item_b).split(self.widths, dim=1)
        h_bh = self.mlp(torch.cat([user_bm, item_bm], dim=1))
        return self.score(torch.cat([user_bf * item_bf, h_bh], dim=1)).squeeze(1)


class NeuralCollaborativeFiltering(Distributed):
    """One step = one Adam update on a batch of (user, item) samples, one in five of them a real rating."""

    item = "(user, item) sample"
    ignored: ClassVar[dict[str, int]] = {"--threshold": 1, "--processes": 1}

    batch_size: int = 2048
    repeat: int = 25
    number: int = 100
    workers: int = 8
    data: Path | None = positional(None, "read ratings.csv here, not a random batch", "--data")
    lr: float = flag(0.0005, "--learning-rate", "-l", help="learning rate")
    layers: tuple[int, ...] = flag((256, 256, 128, 64), help="widths of the MLP")
    factors: int = flag(64, "--factors", "-f", help="width of the GMF")
    dropout: float = flag(0.0, help="share of each MLP layer's output that is dropped (0.5 for the vendors' ncf)")
    beta1: float = flag(0.9, help="of Adam's mean gradient (0.25 for the vendors' ncf)")
    beta2: float = flag(0.999, help="of Adam's mean square (0.5 for the vendors' ncf)")

    def build(self, run: Run) -> None:
        if self.layers[0] % 2:
            raise CotenantError(
                f"The first of --layers is {self.layers[0]}, and not even: users and items have a half each."
            )
        self.model = self.distribute(run, NeuMF(self.factors, self.layers, self.dropout))
        # Dense gradients, in one fused pass over the weights. Sparse ones would need SparseAdam: another algorithm
        # (it forgets to decay the moments of rows not seen) which counts distinct rows on the host each step.
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr, betas=(self.beta1, self.beta2))

    def batches(self, run: Run) -> Iterator[Batch]:
        if self.data is None:
            user = torch.randint(USERS, (self.batch_size,))
            share = torch.empty(self.batch_size).uniform_(POPULAR / (POPULAR + ITEMS), 1)
            rated = (POPULAR / share - POPULAR).long().clamp(0, ITEMS - 1)
            positive = torch.rand(self.batch_size) < 1 / (1 + NEGATIVES)
            item = torch.where(positive, rated, torch.randint(ITEMS, (self.batch_size,)))
            return run.resident(user, item, positive.float())
        user_r, item_r = run.read(read_ratings, "ratings.csv")
        user_r, item_r = user_r.to(run.device), item_r.to(run.device)
        return samples(user_r, item_r, Known.of(user_r, item_r), self.batch_size)

    def step(self, run: Run, batch: Batch) -> torch.Tensor:
        user, item, label = batch
        loss = F.binary_cross_entropy_with_logits(self.model(user, item), label)
        run.update(loss, self.optimizer)
        return loss


class Known(NamedTuple):
    """The items that each user rated, so that others can be drawn; r distinct ratings, u users."""

    keys_r: torch.Tensor
    """ITEMS x user + item - the rated items of this user before it: ascending, and how many items are not rated."""
    first_u: torch.Tensor
    """The index of each user's first key."""
    count_u: torch.Tensor

    @classmethod
    def of(cls, user_r: torch.Tensor, item_r: torch.Tensor) -> "Known":
        pairs_r = (user_r.long() * ITEMS + item_r).unique()
        count_u = torch.bincount(pairs_r // ITEMS, minlength=USERS)
        first_u = count_u.cumsum(0) - count_u
        place_r = torch.arange(len(pairs_r), device=pairs_r.device)
        return cls(pairs_r - place_r + first_u.index_select(0, pairs_r // ITEMS), first_u, count_u)

    def others(self, user_b: torch.Tensor) -> torch.Tensor:
        """Return for each user an item, (b), drawn uniformly from the items that the user did not rate.

        The n-th of these is n plus the rated items before it, found by one search. To draw rated items again would
        make the host wait for the end. A user with ratings of all items gets any item.
        """
        count_b, first_b = self.count_u.index_select(0, user_b), self.first_u.index_select(0, user_b)
        drawn_b = torch.randint(2**31 - 1, user_b.shape, device=user_b.device) % (ITEMS - count_b).clamp_(min=1)
        before_b = torch.searchsorted(self.keys_r, user_b.long() * ITEMS + drawn_b, right=True) - first_b
        return (drawn_b + before_b).clamp_(max=ITEMS - 1)


def samples(user_r: torch.Tensor, item_r: torch.Tensor, known: Known, batch_size: int) -> Iterator[Batch]:
    """Yield users, items and labels, (b) each, without end, drawn on the device that holds the ratings.

    An epoch would have five samples of each rating: the rated item, labelled 1, and four items drawn uniformly from
    the user's unrated ones, labelled 0. Each row of a batch is one of these, chosen uniformly, so no order of all of
    them is made.
    """
    # Many small batches are drawn at once: else drawing would launch as many kernels as a layer.
    size = (max(1, DRAWN_AT_ONCE // batch_size) * batch_size,)
    while True:
        chosen = torch.randint(len(user_r) * (1 + NEGATIVES), size, device=user_r.device)
        rating = chosen // (1 + NEGATIVES)
        positive = chosen % (1 + NEGATIVES) == 0
        user = user_r.index_select(0, rating)
        item = torch.where(positive, item_r.index_select(0, rating), known.others(user).to(item_r.dtype))
        parts = (user, item, positive.float())
        yield from zip(*(part.split(batch_size) for part in parts), strict=True)


def read_ratings(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Return user and item of each rating, counted from 0 in the order of their ids.

    Raises ValueError for a file without ratings, and MissingDataError for more users or items than ML-20M's.
    """
    pieces = []
    with path.open("rb") as file:
        file.readline()
        while lines := file.read(PIECE_BYTES) + file.readline():
            pieces.append(users_and_items(np.frombuffer(lines.rstrip() + b"\n", np.uint8)))
    if not pieces or any(piece is None for piece in pieces):
        raise ValueError("it is no list of ratings")
    counted: list[torch.Tensor] = []
    for ids, most, name in zip(np.concatenate(pieces, axis=1), (USERS, ITEMS), ("users", "items"), strict=True):
        known = np.bincount(ids) > 0
        if known.sum() > most:
            raise MissingDataError(f"{path} has more than ML-20M's {most:,} {name}.", "Use a smaller set.")
        counted.append(torch.from_numpy((known.cumsum(dtype=np.int32) - 1)[ids]))
    return counted[0], counted[1]


def users_and_items(text: np.ndarray) -> np.ndarray | None:
    """Return the first two of the four numbers of each line, (2, lines); None if a line has other content."""
    commas, ends = (np.flatnonzero(text == ord(character)) for character in ",\n")
    if len(commas) != 3 * len(ends):
        return None
    starts = np.append(0, ends[:-1] + 1)
    commas = commas.reshape(-1, 3)
    if (commas[:, 0] < starts).any() or (commas[:, 2] > ends).any():
        return None
    stops = commas[:, :2].T
    ids = np.stack([numbers(text, starts, stops[0]), numbers(text, stops[0] + 1, stops[1])])
    return ids if ids.min() >= 0 and ids.max() <= LARGEST_ID else None


def numbers(text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Return the decimal numbers between these places, the n-th digits of all at once; -1 for other texts."""
    values = np.zeros(len(starts), np.int32)
    lengths = stops - starts
    wrong = lengths < 1
    for place in range(min(lengths.max(), 1 + len(str(LARGEST_ID)))):
        digit = text[np.minimum(starts + place, stops)] - np.uint8(ord("0"))  # More than 9 if it is no digit.
        wrong |= (place < lengths) & (digit > 9)
        values = np.where(place < lengths, 10 * values + digit, values)
    return np.where(wrong, -1, values)


if __name__ == "__main__":
    main(NeuralCollaborativeFiltering)
