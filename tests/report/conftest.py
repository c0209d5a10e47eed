"""Pages without their pictures, which take most of a page's time, for tests of its words and numbers."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from cotenant.report.sections import job_pictures, top


@pytest.fixture
def unpictured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pictures of shares, observations and newest launches; their captions stay."""
    for module, name in ((top, "rows_picture"), (job_pictures, "rows_picture"), (job_pictures, "timelines_picture")):
        monkeypatch.setattr(module, name, lambda *_, **__: Markup())
