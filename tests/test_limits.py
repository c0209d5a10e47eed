"""A user with few processes or few open files gets a sentence, and keeps the records that are written."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands.calling import write
from cotenant.commands import suite_run
from cotenant.errors import CotenantError, shortage
from cotenant.isolation import open_files
from report.making import launch
from tenants.suites import ROOT

RUN = [sys.executable, "-E", str(ROOT / "run.py")]
UID = 47047


def in_python(code: str, **environ: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"}
    line = [sys.executable, "-c", f"import os\n{code}"]
    ended = subprocess.run(line, env=kept | environ, capture_output=True, text=True, check=True)
    return ended.stdout.split()


def test_polars_has_one_thread_and_children_inherit_no_limit() -> None:
    shown = "print(pl.thread_pool_size(), os.environ.get('POLARS_MAX_THREADS'))"
    assert in_python(f"from cotenant.frames import pl\n{shown}") == ["1", "None"]
    assert in_python(f"from cotenant.frames import pl\n{shown}", POLARS_MAX_THREADS="3") == ["3", "3"]
    ours = in_python(f"import polars as pl\nimport cotenant.frames\n{shown}")
    assert ours == in_python(f"import polars as pl\n{shown}"), "a program that has imported it keeps its threads"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="Only root can become a user for this.")
def test_few_processes_are_a_sentence(tmp_path: Path) -> None:
    """Of root the kernel does not limit them; the user may read root's files, where the interpreter can lie."""
    write(tmp_path / "records", launch("vae"))
    rights = "+dac_override,+dac_read_search"
    user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    user += [f"--inh-caps={rights}", f"--ambient-caps={rights}", "prlimit"]
    for most, status in ((16, 0), (6, 2)):
        line = [*user, f"--nproc={most}", *RUN, "report", "records"]
        ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == status, ended.stderr
    said = "cotenant: polars, which makes the tables, needs 11 threads more. Raise the limit of processes and threads "
    assert ended.stderr == f"{said}(ulimit -u, pids.max: 6), or end other programs.\n"


class PanicException(BaseException):
    """As polars raises it."""


REFUSED = [
    PanicException('could not spawn threads: IOError(Os { code: 11, kind: WouldBlock, message: "..." })'),
    RuntimeError("can't start new thread"),
    BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
]


@pytest.mark.parametrize("error", REFUSED)
def test_records_are_named_when_a_table_cannot_be_made(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(suite_run, "_print_tables", refuse)
    suite = SimpleNamespace(before=(), options=SimpleNamespace(paths=SimpleNamespace(output=Path("/there"))))
    suite_run._print_results([None, None], suite, Namespace())  # type: ignore[list-item,arg-type]
    said = capsys.readouterr().err
    assert "There is no table: No further process or thread can be started. Raise the limit of " in said
    assert said.endswith("2 records are in /there: ./run.sh report /there shows them.\n")


def test_other_errors_are_no_shortage() -> None:
    assert [shortage(each) for each in (RuntimeError("x"), PanicException("x"), OSError(errno.ENOENT, "x"))] == [
        None
    ] * 3
    assert "ulimit -n" in str(shortage(OSError(errno.EMFILE, "Too many open files")))


@pytest.mark.parametrize(("hard", "users", "possible"), [(64, 8, None), (64, 9, 8), (40, 3, 2), (16, 1, 0)])
def test_users_fit_into_the_hard_limit_of_open_files(
    hard: int, users: int, possible: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "callers_limits", lambda: (8, hard))
    if possible is None:
        open_files.check_open_files(users)
    else:
        with pytest.raises(CotenantError, match=rf"is {hard}: it allows {possible} users?\."):
            open_files.check_open_files(users)


def test_users_beyond_the_limit_of_open_files_are_refused(tmp_path: Path) -> None:
    words = ["exec", "--users", "9", "--isolation", "none", "--", sys.executable, "-c", ""]
    line = ["prlimit", "--nofile=24:64", *RUN, *words]
    environ = os.environ | {"COTENANT_LOCK": str(tmp_path / "lock")}
    ended = subprocess.run(line, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert ended.stderr.startswith(
        "cotenant: A launch of 9 users needs 68 open files, and the hard limit (ulimit -Hn) is 64: it allows 8 users. "
    ), ended.stderr
    assert (ended.returncode, list(tmp_path.iterdir())) == (2, [])


def test_a_child_gets_the_open_file_limit_of_the_caller() -> None:
    code = """
import resource, subprocess, sys
from cotenant.isolation.open_files import give_callers_limits, raise_limit
raise_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
asked = "import resource; input(); print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
child = subprocess.Popen([sys.executable, "-c", asked], stdin=subprocess.PIPE, text=True)
sys.stdout.flush()
give_callers_limits(child.pid)
child.communicate("\\n")
"""
    line = ["prlimit", "--nofile=24:64", sys.executable, "-c", code]
    ended = subprocess.run(line, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["64", "64", "24", "64"]
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64
