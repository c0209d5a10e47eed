"""The ratings file: MovieLens's format, every user and movie, and popularity distributed as in the real file."""

from collections import Counter

import numpy as np

from cotenant.datasets.sets import ml_20m


def made(ratings: int = 20_000, least: int = 5, users: int = 700, movies: int = 1500) -> bytes:
    (part,) = ml_20m.recipe(ratings, least, users, movies).files()
    return b"".join(ml_20m.content(part))


def columns(text: bytes) -> np.ndarray:
    return np.array([line.split(",") for line in text.decode().splitlines()[1:]], dtype=float)


def test_the_lines_are_those_of_movielens():
    header, *lines = made().decode().splitlines()
    assert header == "userId,movieId,rating,timestamp"
    assert len(lines) == 20_000
    for line in lines[::97]:
        user, movie, rating, timestamp = line.split(",")
        assert [user, movie, timestamp] == [str(int(word)) for word in (user, movie, timestamp)]
        assert rating in {f"{half / 2:.1f}" for half in range(1, 11)}


def test_every_user_and_every_movie_is_in_it():
    user, movie, rating, timestamp = columns(made(users=1600)).T
    assert np.array_equal(np.unique(user), np.arange(1, 1601))
    assert len(np.unique(movie)) == 1500
    assert movie.min() >= 1
    assert movie.max() <= 131_262
    assert 3.3 < rating.mean() < 3.7
    assert 7.8e8 < timestamp.min() < timestamp.max() < 1.43e9


def test_some_users_and_movies_have_most_of_the_ratings():
    user, movie, *_ = columns(made(ratings=60_000, users=2_000)).T
    for column, most in ((user, 0.4), (movie, 0.4)):
        counts = np.sort(np.unique(column, return_counts=True)[1])[::-1]
        assert counts[: len(counts) // 5].sum() > most * counts.sum()


def test_no_user_rates_a_movie_twice_across_pieces(monkeypatch):
    monkeypatch.setattr(ml_20m, "RATINGS_PER_PIECE", 3_000)
    (part,) = ml_20m.recipe(20_000, 5, 700, 1500).files()
    pieces = list(ml_20m.content(part))
    assert len(pieces) > 5
    user, movie, *_ = columns(b"".join(pieces)).T
    assert len(user) == 20_000
    assert (np.diff(user * 1e6 + movie) > 0).all()
    assert np.bincount(user.astype(int))[1:].min() >= 5
    assert len(np.unique(user)) == 700


def test_the_small_set_has_all_movies_and_fits_its_estimate():
    recipe = ml_20m.DATASET.sizes["small"]
    (part,) = recipe.files()
    text = b"".join(ml_20m.content(part))
    assert 0.75 * recipe.estimated_bytes < len(text) < recipe.estimated_bytes
    ids = Counter(line.split(b",", 2)[1] for line in text.splitlines()[1:])
    assert (len(ids), ids.total()) == (26_744, 400_000)
    assert text.splitlines()[-1].startswith(b"138493,")
