from __future__ import annotations

import pytest

from cotenant.machine.batch import BATCH_SYSTEMS, batch_system


@pytest.mark.parametrize(("variable", "name"), BATCH_SYSTEMS.items())
def test_a_job_knows_whose_it_is(variable: str, name: str) -> None:
    assert batch_system({variable: "7"}) == name
    assert batch_system({variable: ""}) == ""


def test_nobody_gave_us_this_host() -> None:
    assert batch_system({"JOB_ID": "0", "PATH": "/bin"}) == ""
