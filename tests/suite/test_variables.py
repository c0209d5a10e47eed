"""`$NAME`, `${NAME}` and `$$`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.calling import refusal
from cotenant.errors import CotenantError
from cotenant.suite.variables import VARIABLES, check_variables, expand_variables, variables_in

VALUES = {"BASE": "/w", "RUN_ID": "7", "DATA_DIRECTORY": "/w/da ta"}


def test_expansion():
    for text, expanded in [
        ("plain", "plain"),
        ("$BASE", "/w"),
        ("${BASE}", "/w"),
        ("$BASE/x/$RUN_ID", "/w/x/7"),
        ("${RUN_ID}_$RUN_ID.json", "7_7.json"),
        ("$$", "$"),
        ("$$BASE", "$BASE"),
        ("a$${BASE}", "a${BASE}"),
        ("$BASEé", "/wé"),
    ]:
        assert expand_variables(text, VALUES) == expanded
    assert expand_variables("$BASE", {"BASE": "$RUN_ID $", "RUN_ID": "7"}) == "$RUN_ID $"


def test_what_cannot_be_expanded():
    for text, message in [
        ("$BSAE/x", "unknown variable 'BSAE' in '$BSAE/x'. Did you mean 'BASE'? Known are BASE, RUN_ID, DATA_"),
        ("${BA SE}", "unknown variable 'BA SE'"),
        ("$RUN_IDs", "unknown variable 'RUN_IDs' in '$RUN_IDs'. Did you mean 'RUN_ID'?"),
        ("$zzz", "unknown variable 'zzz' in '$zzz'. Known are"),
        ("a$", "a '$' without a name after it in 'a$'. Write $$ for a dollar sign."),
        ("$é", "a '$' without a name after it"),
        ("${BASE", "a '${' without its '}'"),
        ("${}", "a '${}' without a name"),
    ]:
        assert message in refusal(expand_variables, text, VALUES)


def test_names_in_a_text_and_variables_that_are_known():
    assert variables_in("$DATA_DIRECTORY/${RUN_ID}/$$BASE $other") == {"DATA_DIRECTORY", "RUN_ID", "other"}
    assert variables_in("none") == set()
    with pytest.raises(CotenantError, match="without a name"):
        variables_in("$")
    check_variables(" ".join(f"${name} ${{{name}}}" for name in VARIABLES))
    with pytest.raises(CotenantError, match="unknown variable 'HOME'"):
        check_variables("$HOME")


@given(st.text())
def test_a_doubled_dollar_makes_any_text_literal(text):
    assert expand_variables(text.replace("$", "$$"), {}) == text


PARTS = st.sampled_from(["$A", "${A}", "$B", "${AB}", "$AB", "$$", "x", " ", "_", "{", "}"])
ODD = st.text(alphabet="${}AB_ $", max_size=4)


@given(
    st.lists(PARTS, min_size=2, max_size=5).map("".join) | ODD,
    st.dictionaries(st.sampled_from(["A", "B", "AB"]), st.text()),
)
def test_checking_and_expanding_agree(text, variables):
    try:
        known = variables_in(text) <= variables.keys()
    except CotenantError:
        known = False
    if known:
        expand_variables(text, variables)
    else:
        assert refusal(expand_variables, text, variables)
