"""`--jobs NAME`: a path, then a profile; `--name` and `--exclude`."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.calling import refusal
from cotenant.errors import CotenantError
from cotenant.suite.cells import Job
from cotenant.suite.jobfile import resolve_path, select


def job(name: str, stem: str = "", family: str = "") -> Job:
    return Job(name, "x", (), "student", stem=stem or name, family=family)


OF_AXIS = (job("net_fp32", family="net"), job("net_bf16", family="net"))
OTHERS = (job("vae"), job("dcgan"), job("resnet18"), job("vae", "vae-2"), job("resnet50"), job("a,b"), job("x[1]"))
JOBS = (*OTHERS, *OF_AXIS)


def test_selection():
    for names, excludes, stems in [
        ([], [], ["vae", "dcgan", "resnet18", "vae-2", "resnet50", "a,b", "x[1]", "net_fp32", "net_bf16"]),
        (["dcgan"], [], ["dcgan"]),
        (["vae"], [], ["vae", "vae-2"]),
        (["resnet*"], [], ["resnet18", "resnet50"]),
        ([" dcgan , resnet50,"], [], ["dcgan", "resnet50"]),
        (["a,b"], [], ["a,b"]),
        (["x[1]"], [], ["x[1]"]),
        ([], ["vae,resnet*,a?b", "x*", "net"], ["dcgan"]),
        (["*"], ["vae", "dcgan"], ["resnet18", "resnet50", "a,b", "x[1]", "net_fp32", "net_bf16"]),
        (["net,dcgan"], ["*_bf16"], ["dcgan", "net_fp32"]),
        (["ne?_bf16"], [], ["net_bf16"]),
    ]:
        assert [job.stem for job in select(JOBS, names, excludes)] == stems


def test_the_start_of_one_name_stands_for_it_and_is_said():
    said: list[str] = []
    assert [job.stem for job in select(JOBS, ["dcg"], (), said.append)] == ["dcgan"]
    families = (job("resnet50_fp32", family="resnet50"), job("resnet50_all"), job("vae"))
    said.clear()
    assert [job.stem for job in select(families, ["resnet", "vae"], (), said.append)] == ["resnet50_fp32", "vae"]
    assert said == ["--name resnet: taken for resnet50."]


def test_refusals():
    for names, excludes, message in [
        (["renset50"], [], "--name: no job matches 'renset50'. Did you mean 'resnet50'? The jobs are vae, dcgan, "),
        (["resnet"], [], "--name: no job matches 'resnet'. 'resnet*' chooses all that begin so. The jobs are"),
        (["dc"], [], "--name: no job matches 'dc'."),
        (["vae,zzz"], [], "--name: no job matches 'zzz'. The jobs are vae, dcgan, resnet18, vae-2, resnet50"),
        ([], ["dgcan"], "--exclude: no job matches 'dgcan'. Did you mean 'dcgan'?"),
        ([], ["*"], "--exclude leaves no job to run. The jobs are vae,"),
    ]:
        assert message in refusal(select, JOBS, names, excludes)


PATTERNS = st.lists(st.sampled_from(["*", "vae", "res*", "x[1]", "[!v]*", "vae,dcgan", "net"]), max_size=3)


@given(PATTERNS, PATTERNS)
def test_the_order_of_the_file_is_kept(names, excludes):
    chosen = {job.stem for job in select(JOBS, names)}
    if excludes:
        chosen -= {job.stem for job in select(JOBS, excludes)}
    if chosen:
        assert [job.stem for job in select(JOBS, names, excludes)] == [job.stem for job in JOBS if job.stem in chosen]
    else:
        assert refusal(select, JOBS, names, excludes).startswith("--exclude leaves no job to run.")


@given(st.lists(st.text(max_size=6), max_size=3), st.lists(st.text(max_size=6), max_size=3))
def test_any_words_choose_jobs_or_are_refused_in_a_sentence(names, excludes):
    with contextlib.suppress(CotenantError):
        assert select(JOBS, names, excludes)


@given(st.lists(st.sampled_from(JOBS), min_size=1, unique=True))
def test_the_stems_of_a_choice_choose_it_again(chosen):
    again = {job.stem for job in select(JOBS, [job.stem for job in chosen])}
    assert again >= {job.stem for job in chosen}
    assert again - {job.stem for job in chosen} <= {"vae-2"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout that is not the working directory."""
    (tmp_path / "profiles").mkdir()
    for name in ("cpu.json", "lambda.json", "notes.txt"):
        (tmp_path / "profiles" / name).write_text("[]")
    return tmp_path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty directory the working one."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        ("cpu", "", "profiles/cpu.json"),
        ("cpu.json", "", "profiles/cpu.json"),
        ("cpu", "elsewhere/cpu.json", "profiles/cpu.json"),
        ("cpu.json", "elsewhere/cpu.json", "elsewhere/cpu.json"),
        ("cpu", "elsewhere/cpu/", "profiles/cpu.json"),
        ("baselines", "baselines.json", "baselines.json"),
        # The reference suite's names of profiles, and ours of the same jobs.
        ("fast", "baselines.json", "baselines.json"),
        ("fast.json", "baselines.json", "baselines.json"),
        ("16go", "profiles/16gb.json", "profiles/16gb.json"),
        ("fast", "profiles/fast.json", "profiles/fast.json"),
        # Of two checkouts the first one wins.
        ("cpu", "other/profiles/cpu.json", "other/profiles/cpu.json"),
        ("lambda", "other/profiles/cpu.json", "profiles/lambda.json"),
    ],
)
def test_a_path_comes_before_a_profile_and_that_before_a_suite(checkout, text, more, expected):
    place = checkout / more
    (place if more.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
    if more.endswith(".json"):
        place.write_text("[]")
    bases = [*([checkout / "other"] if more.startswith("other") else []), checkout]
    assert resolve_path(text, bases).absolute() == checkout / expected
    assert resolve_path(str(checkout / "profiles" / "lambda.json"), []).name == "lambda.json"


def test_neither_a_file_nor_a_profile(checkout, elsewhere):
    for text, message in [
        ("cpus", "--jobs: 'cpus' is neither a file nor a profile. Did you mean 'cpu'? The profiles are cpu,"),
        ("zzz", "a profile. The profiles are cpu, lambda."),
        ("", "'' is neither a file nor a profile."),
        ("..", "'..' is a directory."),
        ("x" * 300, "is neither a file nor a profile."),
        ("a\0b", "'a\\x00b' is neither a file nor a profile."),
    ]:
        assert message in refusal(resolve_path, text, [checkout])
    with pytest.raises(CotenantError, match=r"'cpu' is neither .* There are no profiles\.$"):
        resolve_path("cpu", [elsewhere])


def test_what_may_not_be_looked_at_is_left_to_the_reader(checkout, monkeypatch):
    def deny(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "exists", deny)
    assert resolve_path("private/jobs.json", [checkout]) == Path("private/jobs.json")
