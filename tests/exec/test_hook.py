"""The hook in Python processes of their own, where a package of a few lines stands for torch."""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cotenant
from cotenant.exec.settings import EXEC_VARIABLE, HOOK, MEETING, Settings
from cotenant.protocol.messages import SOCKET_VARIABLE, TENANT_VARIABLE
from patience import HANG_S

PACKAGE = Path(cotenant.__file__).parent
TORCH = {
    "__init__.py": """
import types
__version__ = "9"
compiling = False
cuda = types.SimpleNamespace(is_initialized=lambda: False)
compiler = types.SimpleNamespace(is_compiling=lambda: compiling)
import torch.optim.optimizer
""",
    "optim/__init__.py": "",
    "optim/optimizer.py": """
hooks = []
register_optimizer_step_post_hook = hooks.append
class Optimizer:
    param_groups = []
    def step(self):
        for hook in hooks:
            hook(self, (), {})
""",
}
STEPS = "import torch\noptimizer = torch.optim.optimizer.Optimizer()\nfor _ in range({}): optimizer.step()\n"


class Program:
    """Python programs of a tenant, and the messages that they sent to a socket that never answers."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.site = folder, folder / "site"
        for name, text in TORCH.items():
            (folder / "site/torch" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "site/torch" / name).write_text(text)
        self.directory = folder / "own"
        self.directory.mkdir()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "s"))
        self._listener.listen()
        self._listener.settimeout(0.0)

    def runs(self, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{HOOK}:{self._folder / 'site'}",
            SOCKET_VARIABLE: str(self._folder / "s"),
            TENANT_VARIABLE: "1",
            EXEC_VARIABLE: Settings(directory=str(self.directory)).encoded(),
        }
        line = [sys.executable, "-c", text]
        return subprocess.run(
            line, env=environment | variables, capture_output=True, text=True, timeout=HANG_S, check=True
        )

    def said(self) -> list[list[str]]:
        """The kinds of messages of each process that has connected."""
        found = []
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return found
            with connection:
                text = b"".join(iter(lambda of=connection: of.recv(1 << 16), b""))
            found.append([json.loads(line)["kind"] for line in text.splitlines()])

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.close()


FORKS = "import os\nif not os.fork():\n    for _ in range(3): optimizer.step()\n    os._exit(0)\nos.wait()\n"
MEASURES = "import cotenant\nwith cotenant.measure('token') as seen:\n    for _ in range(5): seen.step(3)"
COUNTED = [["hello", "begin", "failed"]]


@pytest.mark.parametrize(
    ("text", "said", "others"),
    [
        ("import torch", [], 0),
        (STEPS.format(5), COUNTED, 0),
        (f"{STEPS.format(4)}{FORKS}for _ in range(2): optimizer.step()", COUNTED, 1),
        (f"import torch; torch.compiling = True\n{STEPS.format(5)}", [], 0),
        (MEASURES, COUNTED, 0),
    ],
    ids=["no step", "steps", "a fork forgets its parent", "compiling", "it imports what measures it"],
)
def test_the_first_process_that_makes_a_step_says_hello(
    program: Program, text: str, said: list[list[str]], others: int
) -> None:
    assert program.runs(text).stderr == ""
    assert program.said() == said
    assert len(list(program.directory.glob(f"{MEETING}.*"))) == others


def test_a_second_process_and_another_rank_say_nothing(program: Program) -> None:
    program.runs(STEPS.format(5), RANK="1", WORLD_SIZE="2")
    assert program.said() == []
    assert not (program.directory / MEETING).exists()
    program.runs(STEPS.format(5), RANK="0", WORLD_SIZE="2")
    program.runs(STEPS.format(5))
    assert program.said() == COUNTED
    assert len(list(program.directory.glob(f"{MEETING}.*"))) == 1


def test_an_exception_speaks_for_itself(program: Program) -> None:
    with pytest.raises(subprocess.CalledProcessError) as ended:
        program.runs(STEPS.format(4) + "raise SystemError('own')")
    assert "SystemError: own" in ended.value.stderr
    assert program.said() == [["hello", "begin"]]


def test_where_lines_are_counted_steps_are_not(program: Program) -> None:
    counted = Settings(directory=str(program.directory), count_line="^step")
    assert program.runs(STEPS.format(5), **{EXEC_VARIABLE: counted.encoded()}).stderr == ""
    assert program.said() == []


def test_an_older_torch_without_is_compiling_is_counted(program: Program) -> None:
    file = program.site / "torch/__init__.py"
    old = file.read_text().replace('"9"', '"2.1.2+cu121"').replace("is_compiling=lambda: compiling", "")
    file.write_text(old)
    assert program.runs(STEPS.format(5)).stderr == ""
    assert program.said() == COUNTED


def test_no_exception_leaves_the_hook(program: Program) -> None:
    ended = program.runs(STEPS.format(5) + "print('whole')", **{SOCKET_VARIABLE: "/nobody/listens"})
    assert ended.stdout == "whole\n"
    assert ended.stderr.startswith("cotenant: steps are counted no longer: no runner listens at /nobody")


def test_a_torch_without_such_hooks_is_not_counted(program: Program, tmp_path: Path) -> None:
    (tmp_path / "site/torch/optim/optimizer.py").write_text("class Optimizer:\n    def step(self): pass\n")
    ended = program.runs(STEPS.format(5) + "print('whole')")
    assert (ended.stdout, program.said()) == ("whole\n", [])
    assert ended.stderr.startswith("cotenant: steps cannot be counted: ")


def test_a_torch_in_a_zip_file_is_followed_once(program: Program, tmp_path: Path) -> None:
    """One loader of a zip file executes all modules of a folder in it."""
    package = tmp_path / "site/torch"
    (package / "optim/sgd.py").write_text("")
    shutil.make_archive(str(tmp_path / "packed"), "zip", package.parent, "torch")
    shutil.rmtree(package)
    ask = "import torch.optim.sgd; print(len(torch.optim.optimizer.hooks), torch.__file__)"
    path = f"{HOOK}:{tmp_path / 'packed.zip'}"
    ended = program.runs(ask, PYTHONPATH=path)
    assert (ended.stdout, ended.stderr) == (f"1 {tmp_path}/packed.zip/torch/__init__.py\n", "")


def test_the_next_sitecustomize_runs_without_our_package(program: Program, tmp_path: Path) -> None:
    (tmp_path / "site/sitecustomize.py").write_text("import builtins; builtins.mark = 7")
    ask = "import sys, sitecustomize; print(mark, sitecustomize.__file__, 'cotenant' in sys.modules)"
    assert program.runs(ask).stdout == f"7 {tmp_path}/site/sitecustomize.py False\n"


def test_alone_measure_is_a_plain_measurement() -> None:
    with cotenant.measure(item="row") as measured:
        for _ in range(4):
            measured.step(8)
    result = measured.result
    assert (result.item, result.steps, result.items, measured.over) == ("row", 4, 32, False)
    assert result.rate_items_s is not None
    assert result.rate_items_s > 0
    assert result.seconds > 0


@pytest.mark.parametrize(
    "file",
    [
        "__init__.py",
        "chrono.py",
        "nesting.py",
        "protocol/client.py",
        "protocol/messages.py",
        "protocol/meter.py",
        "exec/*.py",
        "exec/hook/*.py",
    ],
)
def test_what_runs_in_a_program_is_of_python_3_8(file: str) -> None:
    found = [path for path in PACKAGE.glob(file) if path.name not in ("lines.py", "supervise.py")]
    assert found
    for path in found:
        text = path.read_text()
        tree = ast.parse(text, feature_version=(3, 8))
        assert not [word for word in ("slots=True", "kw_only", "zip(strict", "itertools.pairwise") if word in text]
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        eager = [node.args[1] for node in calls if ast.unparse(node.func) == "isinstance"]
        assert not [kinds for kinds in eager if isinstance(kinds, ast.BinOp)]
