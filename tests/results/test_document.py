"""docs/records.md is what the code says, and every field of a record has a meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.results.columns import COLUMNS, OBSERVATION_COLUMNS
from cotenant.results.schema import TYPES, meanings, page_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "records.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == page_text(), "python -m cotenant.results.schema page > docs/records.md"


@pytest.mark.parametrize("of", TYPES, ids=lambda of: of.__name__)
def test_every_field_has_a_meaning(of: type) -> None:
    fields = set(of.__annotations__) - {"arguments"}
    assert {name for name, meaning in meanings(of).items() if meaning} == fields


def test_every_field_and_column_stands_in_the_page() -> None:
    page = page_text()
    names = {name for of in TYPES for name in of.__annotations__} - {"arguments"}
    for name in names | {one.name for one in COLUMNS} | {one.name for one in OBSERVATION_COLUMNS}:
        assert f"| `{name}` |" in page
    assert "| text |  |" not in page
