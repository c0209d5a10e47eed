"""The page of findings: made from the source, and so never behind it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cotenant.findings import catalogue
from cotenant.findings.launch_rules import LAUNCH_RULES
from cotenant.findings.rules import RULES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_that_of_the_source() -> None:
    assert (DOCS / "findings.md").read_text() == catalogue.page(), (
        "python -m cotenant.findings.catalogue > docs/findings.md"
    )


@pytest.mark.parametrize("rule", [*RULES, *LAUNCH_RULES], ids=lambda rule: rule.__name__.rpartition(".")[2])
def test_every_rule_stands_on_it(rule: object) -> None:
    tree = ast.parse(Path(str(rule.__file__)).read_text())  # type: ignore[attr-defined]
    # `not_enforced` is made by a function of its own, as doctor says it too.
    found = list(catalogue._made_in(tree))
    assert found
    for one in found:
        assert f"| `{one.rule}` | {' or '.join(one.severities)} | " in catalogue.page()


def test_whatever_is_made_anywhere_stands_on_it() -> None:
    """A finding made in a room that has no section would be missing."""
    everywhere = {one.rule for one in catalogue.entries(catalogue.PACKAGE)}
    listed = {
        one.rule
        for _, _, rooms in catalogue.SECTIONS
        for room in rooms
        for one in catalogue.entries(catalogue.PACKAGE / room)
    }
    assert everywhere == listed
    assert len(everywhere) > 50


def test_every_line_has_a_severity_a_sentence_and_a_remedy_if_it_is_more_than_information() -> None:
    for one in catalogue.entries(catalogue.PACKAGE):
        assert set(one.severities) <= {"error", "warning", "info"}, one
        assert one.sentence, one


def test_severity_and_remedy_follow_the_names_a_function_gives_them() -> None:
    source = '''
"""What it is about."""
def check(record):
    severity = "error" if record.bad else "warning"
    remedy = "Do this." if record.bad else "Do that."
    return Finding("rule", severity, f"{record.n} of them.", remedy)
'''
    (entry,) = catalogue._made_in(ast.parse(source))
    assert entry == catalogue.Entry("rule", ("error", "warning"), "… of them.", "Do this. Do that.")
