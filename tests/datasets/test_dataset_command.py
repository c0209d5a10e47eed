"""The command line: where the sets go, which size, what is said, and how little a second run costs."""

import os
import pty
import subprocess
import sys
from types import SimpleNamespace

import pytest

from cotenant.datasets.__main__ import main
from cotenant.datasets.makers import MAKERS
from cotenant.datasets.problems import UNASKED_BYTES
from cotenant.datasets.real import REAL_SETS
from datasets.conftest import OURS

SETS = ", ".join(MAKERS)

HEAVY = """
import sys
from cotenant.datasets.__main__ import main
status = main(["mnist", "--root", sys.argv[1]])
print(status, sorted({"numpy", "PIL", "rich", "torch", "multiprocessing"} & set(sys.modules)))
"""


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No settings of the caller's, an empty working directory."""
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def orders(monkeypatch):
    """Records what would be made on a host without accelerators."""
    seen = []
    monkeypatch.setattr("cotenant.machine.topology.discover", lambda: SimpleNamespace(accelerators=()))
    monkeypatch.setattr(
        "cotenant.datasets.__main__.ensure", lambda root, maker, size: seen.append((str(root), maker.name, size))
    )
    return seen


def test_a_second_run_imports_nothing_heavy(tmp_path, command, environment):
    first = command("mnist", "--root", tmp_path / "data")
    assert first.returncode == 0, first.stderr
    line = [sys.executable, "-c", HEAVY, str(tmp_path / "data")]
    second = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    assert second.stdout == "0 []\n"
    assert second.stderr == f"mnist: present (small) in {tmp_path}/data/mnist\n"


@pytest.mark.parametrize(
    ("flags", "variables", "root"),
    [
        ([], {}, "workspace/data"),
        ([], {"BASE": "/b"}, "/b/data"),
        ([], {"BASE": "/b", "DATA_DIRECTORY": "/d"}, "/d"),
        ([], {"BASE": "", "DATA_DIRECTORY": ""}, "workspace/data"),
        (["--root", "/r"], {"BASE": "/b", "DATA_DIRECTORY": "/d"}, "/r"),
    ],
)
def test_where_the_sets_go(orders, monkeypatch, flags, variables, root):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["mnist", *flags]) == 0
    assert orders == [(root, "mnist", "small")]


@pytest.mark.parametrize(
    ("flags", "variable", "size"),
    [
        ([], None, "small"),
        ([], "", "small"),
        ([], "full", "full"),
        (["--size", "small"], "full", "small"),
        (["--size", "full"], None, "full"),
    ],
)
def test_which_size(orders, monkeypatch, flags, variable, size):
    if variable is not None:
        monkeypatch.setenv("DATASET_SIZE", variable)
    assert main(["mnist", "imagenet", "mnist", *flags]) == 0
    assert orders == [("workspace/data", "mnist", size), ("workspace/data", "imagenet", size)]


@pytest.mark.parametrize("variable", [None, ""])
def test_unsaid_fake_sets_are_full_beside_an_accelerator(orders, monkeypatch, variable):
    monkeypatch.setattr("cotenant.machine.topology.discover", lambda: SimpleNamespace(accelerators=["one"]))
    if variable is not None:
        monkeypatch.setenv("DATASET_SIZE", variable)
    assert main(["mnist"]) == 0
    assert main(["mnist", "--size", "small"]) == 0
    assert [size for _, _, size in orders] == ["full", "small"]


def test_a_suite_makes_no_more_than_anybody_expects_beside_an_accelerator(orders, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("cotenant.machine.topology.discover", lambda: SimpleNamespace(accelerators=["one"]))
    assert main(["mnist", "imagenet", "--root", str(tmp_path)]) == 0
    monkeypatch.setenv("COTENANT_RUN", "7-1-1")
    assert main(["mnist", "imagenet", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().err == "imagenet: small, as nobody has asked for 10 GB: DATASET_SIZE=full does.\n"
    monkeypatch.setenv("DATASET_SIZE", "full")
    assert main(["imagenet", "--root", str(tmp_path)]) == 0
    assert [(name, size) for _, name, size in orders] == [
        ("mnist", "full"),
        ("imagenet", "full"),
        ("mnist", "full"),
        ("imagenet", "small"),
        ("imagenet", "full"),
    ]


def test_what_a_suite_makes_full_beside_an_accelerator_is_no_more_than_2_gb_in_all():
    sizes = {name: maker.sizes["full"].estimated_bytes for name, maker in MAKERS.items()}
    assert sum(size for size in sizes.values() if size <= UNASKED_BYTES) <= UNASKED_BYTES


@pytest.mark.parametrize(
    ("words", "variables", "sentence"),
    [
        (["mnits"], {}, f"There is no data set 'mnits'. Did you mean 'mnist'? The sets: {SETS}."),
        (["mnist", "zzz"], {}, f"There is no data set 'zzz'. The sets: {SETS}."),
        (
            ["mnist", "--size", "ful"],
            {},
            "--size is 'ful', which is no size. Did you mean 'full'? The sizes: small, full.",
        ),
        (["mnist"], {"DATASET_SIZE": "9"}, "DATASET_SIZE is '9', which is no size. The sizes: small, full."),
        (["mnist", "--root", ""], {}, "--root is empty. Give a folder, or leave the flag out."),
        ([], {}, f"No data set was named. Name some of: {SETS}."),
        (
            ["mnist"],
            {"FAKE_DATASET": "no"},
            "FAKE_DATASET is 'no'. Set it to 1 for fake sets, 0 for real ones, or unset it.",
        ),
        (
            ["mnist"],
            {"FAKE_DATASET": "0", "USE_VALIDATION": "yes"},
            "USE_VALIDATION is 'yes'. Set it to 1 for the smaller halves, or unset it.",
        ),
        (["squad"], {}, "There is no fake set 'squad'. FAKE_DATASET=0 gets the real one."),
        (
            ["ljspech"],
            {"FAKE_DATASET": "0"},
            f"There is no real data set 'ljspech'. Did you mean 'ljspeech'? The sets: {', '.join(REAL_SETS)}.",
        ),
        ([], {"FAKE_DATASET": "0"}, f"No data set was named. Name some of: {', '.join(REAL_SETS)}."),
        (
            ["mnist", "--mirror", "https://mirror"],
            {},
            "--mirror is of use for real sets only. Set FAKE_DATASET=0, or leave it out.",
        ),
        (["mnist", "--from", "x"], {}, "--from is of use for real sets only. Set FAKE_DATASET=0, or leave it out."),
        (
            ["mnist"],
            {"FAKE_DATASET": "0", "COTENANT_MIRROR": "mirror"},
            (
                "COTENANT_MIRROR is 'mirror': only http, https, file can be read."
                " Give a base URL such as https://mirror.example/data or file:///mnt/data."
            ),
        ),
    ],
)
def test_wrong_usage_is_one_sentence(orders, capsys, monkeypatch, words, variables, sentence):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(words) == 2
    assert capsys.readouterr().err == f"error: {sentence}\n"
    assert orders == []


def test_an_unknown_flag_is_wrong_usage(command):
    done = command("mnist", "--sizes", "small")
    assert done.returncode == 2
    assert "unrecognized arguments: --sizes" in done.stderr


def test_the_root_is_a_file(tmp_path, command):
    (tmp_path / "file").write_text("")
    done = command("mnist", "--root", tmp_path / "file")
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {tmp_path}/file cannot be used as a folder: File exists."
        " Move it away, or give another place with --root DIR or DATA_DIRECTORY.\n"
    )


@pytest.mark.parametrize(
    ("words", "variables", "order"),
    [
        ([], {}, ("all", False, None, None)),
        (["--size", "full"], {"USE_VALIDATION": "0"}, ("all", True, None, None)),
        (["--mirror", "https://m/"], {"COTENANT_MIRROR": "ftp://x"}, ("all", False, "https://m", None)),
        ([], {"USE_VALIDATION": "1", "COTENANT_DATA_FROM": "/mine"}, ("validation", False, None, "/mine")),
        (["--from", "/mine"], {"DATASET_SIZE": "full", "COTENANT_MIRROR": ""}, ("all", True, None, "/mine")),
    ],
)
def test_which_real_set(monkeypatch, words, variables, order):
    seen = []
    monkeypatch.setattr("cotenant.datasets.obtaining.obtain", seen.append)
    for name, value in (variables | {"FAKE_DATASET": "0"}).items():
        monkeypatch.setenv(name, value)
    assert main(["mnist", "ml_20m", "--root", "/r", *words]) == 0
    mnist, ml_20m = seen
    assert (mnist.half, mnist.large, mnist.mirror, str(mnist.local) if mnist.local else None) == order
    assert str(mnist.folder) == "/r/mnist"
    assert ml_20m.half == "all"  # It has no smaller half.


def test_the_list_of_real_sets(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_DATASET", "0")
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["set", *REAL_SETS]
    assert lines[1].split()[1:6] == ["all", "12", "MB", "55", "MB"]
    assert list(tmp_path.iterdir()) == []


def test_a_fake_set_imports_nothing_of_the_real_ones(environment):
    code = "import sys, cotenant.datasets.__main__; print([m for m in sys.modules if m == 'tarfile' or '.real' in m])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_list_makes_nothing(tmp_path, capsys):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["set", *MAKERS]
    assert "5.5 MB" in lines[1]
    assert "ImageNet: not there" in lines[2]
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_is_130(capsys, monkeypatch):
    def interrupted(root, maker, size):
        raise KeyboardInterrupt

    monkeypatch.setattr("cotenant.datasets.__main__.ensure", interrupted)
    assert main(["mnist"]) == 130
    assert capsys.readouterr().err.startswith("Interrupted.")


def test_a_terminal_gets_a_bar(tmp_path, environment):
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "cotenant.datasets", "mnist", "--root", str(tmp_path / "data")]
    maker = subprocess.Popen(line, env=environment | {"TERM": "xterm"}, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # The other end was closed.
        pass
    os.close(ours)
    assert maker.wait(timeout=30) == 0
    assert b"4/4" in shown
    assert b"\x1b[" in shown
