"""Every command line of README and docs does what the page says, and every link leads somewhere."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands.calling import Capture
from cotenant.cli import main
from cotenant.commands import COMMANDS, views
from cotenant.commands.flags import at_dashes
from pages import ELSEWHERE, FENCE, LAUNCHING, LINES, OTHERS, PAGES, READING, ROOT, reads
from patience import HANG_S
from report.conftest import unpictured
from tenants.suites import RUN, script
from workplace import NAMES, make_workplace

__all__ = ["unpictured"]

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def test_the_pages_have_command_lines() -> None:
    assert len(LINES) > 60
    heads = ("./run.sh", "./run_10.sh", "./test.sh", "make", "python", "sudo ./cgroup_setup.sh", "srun", "docker run")
    for start in heads:
        assert any(line.startswith(start) for line in LINES.values()), start
    run = {*LAUNCHING, *OTHERS} | {place for place, line in LINES.items() if reads(line)}
    for place in {*LINES} - run:
        assert LINES[place].startswith(tuple(ELSEWHERE)), f"no test runs {place}"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make records under all the names that the pages use for directories of them; return the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BASE", str(tmp_path / "workspace"))
    make_workplace(tmp_path)
    monkeypatch.setattr(views, "TARGETS", tmp_path / "own")
    return tmp_path


def alike(words: list[str]) -> str:
    """Return a line without its directories, which hold the same records, and with one name for each file it writes."""
    kept = [word for word in words if word not in (*NAMES, "workspace/output", "--quick")]
    return re.sub(r"(--html|--out) \w+", r"\1 x", " ".join(kept))


@pytest.mark.usefixtures("unpictured")
def test_commands_that_read_are_run_as_they_stand(workspace: Path, capsys: Capture) -> None:
    """Of lines that are alike one is run. tests/commands/test_every_command.py runs those of README, each in a process
    of its own, and tests/report/test_figures.py draws figures.
    """
    reading = {place: shlex.split(line)[1:] for place, line in LINES.items() if reads(line) and "--figures" not in line}
    of_readme = {alike(words) for place, words in reading.items() if place.startswith("README.md")} - {"doctor"}
    lines = {alike(words): (place, words) for place, words in reading.items() if not place.startswith("README.md")}
    for place, words in (found for one, found in lines.items() if one not in of_readme):
        quick = ["--quick"] if words[0] == "doctor" and "--quick" not in words else []  # without a child with torch
        status = main([*words, *quick])
        printed = capsys.readouterr()
        assert status == 0, (place, printed.err)
        assert printed.out or {"--out", "--save-target"} & {*words}, place


def check_shown(capsys: Capture, place: str, words: list[str]) -> None:
    """Assert that `--show` takes and shows the jobs of a run with these words."""
    end = words.index("--") if "--" in words else len(words)
    status = main(["run", *words[:end], "--show", *words[end:]])
    printed = capsys.readouterr()
    assert status == 0, (place, printed.err)
    assert printed.out, place


def test_launch_commands_in_the_docs_can_be_parsed(workspace: Path, capsys: Capture) -> None:
    lines = {place: shlex.split(line[line.index("./run") :]) for place, line in LINES.items() if "./run" in line}
    for place, (_, *words) in lines.items():
        if not {*words[:1]} & {*COMMANDS} and not {"--help", "--version"} & {*words}:
            check_shown(capsys, place, words)


def test_other_commands_take_their_flags() -> None:
    for line in LINES.values():
        words = shlex.split(line)
        if words[0] == "./run.sh" and {*words[1:2]} & ({*COMMANDS} - {*READING}):
            module = importlib.import_module(f"cotenant.commands.{words[1]}")
            flags = at_dashes(words[2:])[0]
            if words[1] == "fleet":
                _, flags = module.parser().parse_known_args(flags[1:])
                module = importlib.import_module("cotenant.commands.run")
            module.parser().parse_words(flags)


def test_programs_and_make_targets_in_the_docs_exist() -> None:
    for place, line in LINES.items():
        words = shlex.split(line.removeprefix("sudo "))
        while "=" in words[0]:
            words = words[1:]
        if words[0] == "make":
            subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        elif words[0] in ("python", "python3") and words[1] != "main.py":
            assert words[1] == "-m" or (ROOT / words[1]).is_file(), place
        elif words[0].startswith("./") or words[0].endswith(".py"):
            assert os.access(ROOT / words[0], os.X_OK) or words[0].endswith(".py"), place
            assert (ROOT / words[0]).is_file(), place
        for word in words[1:] if words[0] == "./test.sh" else ():
            assert not word.startswith("tests/") or (ROOT / word).exists(), place


RECIPES = ROOT / "docs/recipes.md"
VERDICTS = ("works", "other", "not here")
"""A word or habit of the four suites works here too, works in another way on purpose, or is left out for a reason."""
STAND_INS = {"DIR": ".", "HOST:PORT": "node1:29400", "FILE": "page.html"}


def test_every_item_of_the_four_suites_has_a_verdict(workspace: Path, capsys: Capture) -> None:
    page = (ROOT / "docs/other-suites.md").read_text().partition("\n## Coming from")[2]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    items = [row for row in rows if row != ["there", "here", "verdict"]]
    assert len(rows) - len(items) == 4
    assert {len(row) for row in rows} == {3}
    assert {verdict for _, _, verdict in items} == set(VERDICTS)
    assert not re.search("missing|undocumented|todo", " ".join(verdict for _, _, verdict in items))
    commands = {line for _, here, _ in items for line in re.findall(r"`(\./run\.sh .+?)`", here)}
    assert len(commands) > 25
    for line in commands:
        words = [STAND_INS.get(word, word) for word in shlex.split(line)[1:]]
        if words[0] in COMMANDS:
            importlib.import_module(f"cotenant.commands.{words[0].replace('-', '_')}").parser().parse_words(words[1:])
        elif words[0] != "--version":
            check_shown(capsys, line, words)


def test_the_manifest_is_one_and_its_command_is_ours(workspace: Path) -> None:
    (job,) = [json.loads(block) for language, block in FENCE.findall(RECIPES.read_text()) if language == "json"]
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert container["resources"]["requests"] == container["resources"]["limits"]
    program, *words = container["command"]
    words[words.index("/records")] = "records"
    assert (program, main(["run", *words, "--show"])) == ("./run.sh", 0)


def ci_commands() -> list[list[str]]:
    """Return the commands of the recipes' two YAML files, for GitHub Actions and for GitLab."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    github, gitlab, *_ = (
        yaml.safe_load(block) for language, block in FENCE.findall(RECIPES.read_text()) if language == "yaml"
    )
    # YAML 1.1 reads the word `on` as true.
    assert github[True] == "pull_request"
    assert github["jobs"]["slower"]["steps"][0]["with"]["fetch-depth"] == 2
    assert gitlab["slower"]["variables"]["GIT_DEPTH"] == "0"
    steps = [step["run"] for step in github["jobs"]["slower"]["steps"] if "run" in step]
    return [steps, gitlab["slower"]["script"]]


def runner_of(folder: Path) -> dict[str, str]:
    """Make a checkout of two commits, the second one slower; return the variables of a runner there."""
    script(folder / "bin/pip", "true")
    script(folder / "bin/cotenant", f'exec {shlex.join(RUN)} "$@"')
    (folder / "bin/python").symlink_to(sys.executable)
    (folder / "work").mkdir()
    environment = os.environ | {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "BASE": str(folder / "base"),
        "COTENANT_LOCK": str(folder / "lock"),
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    loop = "import cotenant, time\nwith cotenant.measure() as m:\n    while True: sum(range(99999)); {}m.step()\n"
    for more in ("", "time.sleep(0.002); "):
        (folder / "work/train.py").write_text(loop.format(more))
        for line in ("init -q", "add train.py", "commit -qm one"):
            subprocess.run(["git", *line.split()], cwd=folder / "work", env=environment, check=True)
    base = subprocess.check_output(["git", "rev-parse", "HEAD^1"], cwd=folder / "work", text=True)
    return environment | {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base.strip()}


@pytest.mark.parametrize("place", [0, 1], ids=["GitHub", "GitLab"])
@pytest.mark.parametrize(
    ("flags", "status", "said"),
    [
        ("--users 1 --dry", 0, "train.duet: 2 users"),
        pytest.param("--users 1", 3, "\nB is slower than A: it has", marks=pytest.mark.slow),
    ],
    ids=["dry", "run"],
)
def test_a_recipe_for_a_runner_does_as_it_stands(
    tmp_path: Path, place: int, flags: str, status: int, said: str
) -> None:
    """The tests install no packages."""
    commands = [command.replace("--users 1", flags) for command in ci_commands()[place]]
    assert flags in commands[-1]
    line, environment = "set -e; " + "; ".join(commands), runner_of(tmp_path)
    ended = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path / "work", env=environment, capture_output=True, text=True, timeout=HANG_S
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert said in ended.stdout


def test_the_check_for_reframe_asks_for_what_a_report_has(
    workspace: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in has the names of ReFrame that the check uses."""
    (check,) = [block for language, block in FENCE.findall(RECIPES.read_text()) if language == "python"]
    here = SimpleNamespace(simple_test=lambda cls: cls, RunOnlyRegressionTest=object)
    sanity = SimpleNamespace(
        all=all,
        map=map,
        assert_in=lambda one, those: one in those,
        defer=float,
        make_performance_function=lambda *of: of,
    )
    for name, module in {"reframe": here, "reframe.utility": here, "reframe.utility.sanity": sanity}.items():
        monkeypatch.setitem(sys.modules, name, module)
    here.utility = SimpleNamespace(sanity=sanity)
    names: dict[str, Any] = {"sanity_function": lambda of: of, "run_before": lambda when: lambda of: of}
    exec(check, names)
    assert main(["report", "--json"]) == 0
    Path("printed").write_text(capsys.readouterr().out)
    made = names["CotenantTest"]()
    made.stagedir, made.stdout = ".", "printed"
    assert made.every_number_holds()
    made.rates()
    assert {unit for _, unit in made.perf_variables.values()} == {"items/s"}
    assert made.perf_variables["convnet"][0] > 1000
    assert main(["run", *made.executable_opts, "--show"]) == 0


def test_links_lead_to_pages_and_headings() -> None:
    for page in PAGES:
        for target, heading in LINK.findall(page.read_text()):
            there = (page.parent / target).resolve() if target else page
            assert there.exists(), (page.name, target)
            if heading and there.suffix == ".md":
                assert heading in headings(there), (page.name, target, heading)


def test_lines_are_as_wide_as_a_reader_s_window() -> None:
    """Lines of tables, of commands and of their output may be longer."""
    prose = [(page.name, line) for page in PAGES for line in FENCE.sub("", page.read_text()).splitlines()]
    assert [(name, line) for name, line in prose if len(line) > 160 and not line.startswith(("|", "!["))] == []


def headings(page: Path) -> set[str]:
    """Return a page's headings as its links spell them."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_no_text_says_to_install_this_package_from_an_index() -> None:
    for path in (*PAGES, *ROOT.glob("common/cotenant/**/*.py")):
        assert not re.search(r"pip install (--\S+ )*'?cotenant\b", path.read_text()), path
