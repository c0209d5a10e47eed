"""What the values of flags stand for; wrong ones are in test_wrong_usage.py."""

import pytest

from cotenant.commands.flags import duration, share


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("60s", 60), ("2m", 120), ("1h", 3600), ("1.5M", 90), ("0.5", 0.5), ("1e3", 1000)]
)
def test_a_time(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(("text", "part"), [("1%", 0.01), ("0.01", 0.01), ("0.5%", 0.005), ("50%", 0.5)])
def test_a_share(text: str, part: float) -> None:
    assert share(text) == part
