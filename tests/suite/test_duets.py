"""`--duet` takes two sets of arguments, with one --- between them."""

from __future__ import annotations

import pytest

from cotenant.commands.preview import show_document, show_lines
from cotenant.errors import CotenantError
from cotenant.suite.cells import Job, expand
from cotenant.suite.duets import Duet, duet_of
from cotenant.suite.foreign import Foreign
from launch.resolving import options


def test_the_dashes_separate_the_words_of_the_two_sides() -> None:
    assert duet_of("vae", ["--batch-size", "64", "---", "-b", "128"]).sides == (("--batch-size", "64"), ("-b", "128"))
    assert duet_of("vae", ["---", "--compile"]).sides == ((), ("--compile",))
    assert duet_of("vae", ["---"]).sides == ((), ())


@pytest.mark.parametrize(
    ("words", "number"), [([], "no"), (["-b", "64"], "no"), (["---", "a", "---"], "more than one")]
)
def test_other_than_one_between_is_a_sentence(words: list[str], number: str) -> None:
    with pytest.raises(CotenantError) as wrong:
        duet_of("vae", words)
    assert wrong.value.sentence == f"--duet compares two, and there is {number} --- after -- between them."
    assert "--duet vae -- --batch-size 64 --- --batch-size 128" in wrong.value.remedy


def test_a_duet_labels_its_sides_and_keeps_the_job_name() -> None:
    (cell,) = expand(Job("vae", "x", (("--repeat", (3,)),), "student"))
    sides = [duet_of("vae", ["---"]).cell(cell, side) for side in "AB"]
    assert [(side.label, side.job.name, side.args) for side in sides] == [
        ("vae.duet.A", "vae", cell.args),
        ("vae.duet.B", "vae", cell.args),
    ]


def test_of_commands_each_side_is_its_own_program_counted_alike() -> None:
    foreign = Foreign(("python", "old.py"), item="row", count_line="^step")
    (cell,) = expand(Job("mine", foreign.shown, (), "student", foreign=foreign))
    duet = Duet("mine", (("python", "old.py"), ("python", "new.py", "--token", "secret")))
    a, b = (duet.cell(cell, side).job for side in "AB")
    assert (a.stem, a.cmd, a.foreign) == ("mine.duet.A", "python old.py", foreign)
    assert b.cmd == "python new.py --token '(hidden)'"
    assert b.foreign == Foreign(("python", "new.py", "--token", "secret"), item="row", count_line="^step")


def test_show_names_a_duet_and_hides_what_nobody_may_read() -> None:
    of = options("--jobs", "cpu", "--duet", "vae", extra=("--batch-size", "64", "---", "--token", "secret"))
    (line,) = show_lines(of, 2, 1)
    assert line.split(maxsplit=2)[:2] == ["vae.duet", "duet"]
    assert "A: --batch-size 64; B: --token" in line
    assert "secret" not in line
    document = show_document(of, 1)
    assert (document["duet"], document["sides"][0]) == ("vae.duet", ["--batch-size", "64"])
    assert "secret" not in str(document)
