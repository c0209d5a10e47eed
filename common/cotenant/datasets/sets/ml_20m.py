"""MovieLens 20M's `ratings.csv`: a user, a movie, the rating and its time.

Source of the format and of the numbers: https://files.grouplens.org/datasets/movielens/ml-20m-README.html
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cotenant.datasets.dataset import ALL, Dataset, File, Half, Recipe, count_lines, published, seeded
from cotenant.frames import pl

USERS = 138_493
MOVIES = 26_744
LARGEST_MOVIE_ID = 131_262
HEADER = b"userId,movieId,rating,timestamp\n"
BYTES_PER_RATING = 28
RATINGS_PER_PIECE = 500_000
# A movie of popularity rank r is rated in proportion to 1 / (r + PLATEAU)^2: the first has a third of a percent,
# the 300 first have half of all ratings, and the last still has some.
PLATEAU = 300
_FIRST_RATING, _LAST_RATING = 789_652_009, 1_427_784_002
# The shares of ratings of half a star to five stars.
_STARS = (0.012, 0.034, 0.014, 0.072, 0.044, 0.214, 0.110, 0.278, 0.077, 0.145)


def recipe(ratings: int, least: int, users: int = USERS, movies: int = MOVIES) -> Recipe:
    """Return the recipe of a set of so many ratings, at least `least` from each user."""
    file = File("ratings.csv", "ratings", ratings, (least, users, movies))
    return Recipe(ratings * BYTES_PER_RATING + len(HEADER), lambda: [file])


def content(file: File) -> Iterator[bytes]:
    """Yield the file: sorted by user and movie, no movie twice for a user, every user and every movie in it."""
    least, users, movies = file.arguments
    random = seeded()
    # The number of each user's ratings is log-normal above `least`.
    eagerness = np.exp(random.normal(0.0, 1.15, users))
    counts = least + random.multinomial(file.items - least * users, eagerness / eagerness.sum())
    # The movies' ids by popularity rank, with gaps, the largest id among them.
    others = random.choice(LARGEST_MOVIE_ID - 1, movies - 1, replace=False) + 1
    identities = random.permutation(np.append(others, LARGEST_MOVIE_ID))
    yield HEADER
    pieces = np.searchsorted(counts.cumsum(), np.arange(RATINGS_PER_PIECE, file.items, RATINGS_PER_PIECE))
    bounds = np.unique([0, *pieces, users])
    for start, stop in itertools.pairwise(bounds):
        yield _rows(random, np.arange(start, stop), counts[start:stop], identities)


def _rows(random: Generator, users: NDArray[Any], counts: NDArray[Any], identities: NDArray[Any]) -> bytes:
    """Return the lines of these users."""
    owner = np.repeat(users, counts)
    movie = identities[_ranks(random, users, counts, len(identities))]
    movie = np.sort(owner * 2**18 + movie) & (2**18 - 1)
    halves = random.choice(len(_STARS), len(owner), p=np.array(_STARS) / sum(_STARS)) + 1
    # A user rates everything in one sitting of about an hour.
    sitting = np.repeat(random.integers(_FIRST_RATING, _LAST_RATING - 3600, len(users)), counts)
    when = sitting + random.integers(0, 3600, len(owner))
    table = pl.DataFrame({"user": owner + 1, "movie": movie, "stars": halves / 2, "when": when})
    return table.write_csv(include_header=False).encode()


def _ranks(random: Generator, users: NDArray[Any], counts: NDArray[Any], movies: int) -> NDArray[Any]:
    """Return the popularity ranks of the movies that each user rated: distinct, one user after the other."""
    starts = counts.cumsum() - counts
    owner = np.repeat(np.arange(len(users)), counts)
    place = np.arange(len(owner)) - np.repeat(starts, counts)
    # One draw from each of a user's equal shares of the popularity, through its inverse distribution function.
    share = (place + random.random(len(owner))) / np.repeat(counts, counts) * movies / (movies + PLATEAU)
    rank = np.minimum(PLATEAU * share / (1 - share), movies - 1).astype(np.int64)
    # User u also rated the movie of rank u, if there is one: so every movie was rated.
    rank[starts[users < movies]] = users[users < movies]
    rank = np.sort(owner * 2**18 + rank) - place
    # Each sorted rank is raised above the one before it, and kept low enough for the ranks after it.
    rank = np.maximum.accumulate(rank) + place - owner * 2**18
    distinct: NDArray[Any] = np.minimum(rank, movies - np.repeat(counts, counts) + place)
    return distinct


def _check(folder: Path) -> dict[str, int]:
    return {"ratings": count_lines(folder / "ratings.csv") - 1}


DATASET = Dataset(
    name="ml_20m",
    folder="ml-20m",
    about="MovieLens ratings, ratings.csv",
    sizes={"small": recipe(400_000, least=2), "full": recipe(20_000_263, least=20)},
    content=content,
    halves={ALL: Half(published("ml_20m"), 534_000_000, ("ratings.csv",))},
    rules={r"ml-20m/(ratings\.csv)": r"\1"},
    check=_check,
)
