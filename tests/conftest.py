"""What all tests share."""

import signal

import pytest
from hypothesis import settings

# A property is no benchmark: how long an example takes says nothing on a machine that is busy with others.
settings.register_profile("long", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=50)

# Under nohup, too, what tests start sees a terminal go.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("fast" if config.option.markexpr == "not slow" else "long")
