"""What curves let expect of a pair."""

from __future__ import annotations

import pytest

from cotenant.stats.fingerprint import Sensed, Traits, kept_beside


def test_what_curves_let_expect_is_the_victims_loss_times_what_the_other_leaves_unkept() -> None:
    dram = Sensed({"vae": Traits(0.7, 0.64), "wlm": Traits(0.9, 1.0), "loader": Traits(1.1, -0.5)}, known=True)
    assert kept_beside(dram, "wlm", "vae") == pytest.approx(1 - 0.1 * 0.36)
    assert kept_beside(dram, "vae", "wlm") == 1
    assert kept_beside(dram, "loader", "vae") == 1, "who gains loses nothing"
    assert kept_beside(dram, "vae", "loader") == pytest.approx(0.7), "nobody leaves less than nothing"
    with pytest.raises(KeyError):
        kept_beside(dram, "vae", "recom")
