"""The command line: the folders and sizes of sets, its output, and the words that it refuses."""

import os
from types import SimpleNamespace
from unittest.mock import Mock, patch

import pytest

from cotenant.datasets import __main__ as command
from cotenant.datasets.__main__ import main
from cotenant.datasets.real import UNASKED_BYTES
from cotenant.datasets.sets import NAMES, find_dataset
from cotenant.errors import CotenantError

SETS = ", ".join(NAMES)


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def host(monkeypatch):
    """Return an invented host without accelerators, which a test may give some."""
    found = SimpleNamespace(accelerators=())
    monkeypatch.setattr("cotenant.machine.topology.discover", lambda: found)
    return found


@pytest.fixture
def requests(monkeypatch, host):
    """Return a list of the sets that the command would obtain."""
    seen = []
    monkeypatch.setattr(command, "obtain", seen.append)
    return seen


def test_where_the_sets_go(requests, tmp_path):
    for flags, variables, root in (
        ([], {}, f"{tmp_path}/workspace/data"),
        ([], {"BASE": "/b"}, "/b/data"),
        ([], {"BASE": "/b", "DATA_DIRECTORY": "/d"}, "/d"),
        ([], {"BASE": "", "DATA_DIRECTORY": ""}, f"{tmp_path}/workspace/data"),
        (["--root", "/r"], {"BASE": "/b", "DATA_DIRECTORY": "/d"}, "/r"),
    ):
        with patch.dict(os.environ, variables):
            assert main(["mnist", *flags]) == 0
        assert str(requests.pop().root) == root


def test_which_size(requests, host):
    for accelerators, flags, variables, size in (
        ((), [], {}, "small"),
        ((), [], {"DATASET_SIZE": ""}, "small"),
        ((), [], {"DATASET_SIZE": "full"}, "full"),
        ((), ["--size", "small"], {"DATASET_SIZE": "full"}, "small"),
        ((), ["--size", "full"], {}, "full"),
        (("one",), [], {}, "full"),
        (("one",), [], {"DATASET_SIZE": ""}, "full"),
        (("one",), ["--size", "small"], {}, "small"),
    ):
        host.accelerators = accelerators
        with patch.dict(os.environ, variables):
            assert main(["mnist", "imagenet", "mnist", *flags]) == 0
        assert [(request.dataset.name, request.size) for request in requests] == [("mnist", size), ("imagenet", size)]
        requests.clear()


def test_a_suite_makes_large_sets_small_unless_full_is_asked(requests, host, monkeypatch, capsys):
    host.accelerators = ("one",)
    monkeypatch.setenv("COTENANT_RUN", "7-1-1")
    assert main(["mnist", "imagenet"]) == 0
    assert capsys.readouterr().err == "imagenet: small; DATASET_SIZE=full asks for 10 GB.\n"
    monkeypatch.setenv("DATASET_SIZE", "full")
    assert main(["imagenet"]) == 0
    made = [(request.dataset.name, request.size) for request in requests]
    assert made == [("mnist", "full"), ("imagenet", "small"), ("imagenet", "full")]
    # The sets that a suite makes full take at most 2 GB together. No job file reads WikiText-103.
    sizes = [find_dataset(name).sizes["full"].estimated_bytes for name in NAMES if name != "wikitext_103"]
    assert sum(size for size in sizes if size <= UNASKED_BYTES) <= UNASKED_BYTES


def test_wrong_usage_is_one_sentence(requests, capsys):
    sizes, where = "The sizes: small, full.", "(--size, DATASET_SIZE)"
    fake_only = "is of use for real sets only. Set FAKE_DATASET=0, or leave it out."
    for words, variables, sentence in (
        (["mnits"], {}, f"There is no data set 'mnits'. Did you mean 'mnist'? The sets: {SETS}."),
        (["mnist", "zzz"], {}, f"There is no data set 'zzz'. The sets: {SETS}."),
        (["ml_20"], {"FAKE_DATASET": "0"}, f"There is no data set 'ml_20'. Did you mean 'ml_20m'? The sets: {SETS}."),
        (["mnist", "--size", "ful"], {}, f"There is no size 'ful' {where}. Did you mean 'full'? {sizes}"),
        (["mnist"], {"DATASET_SIZE": "9"}, f"There is no size '9' {where}. {sizes}"),
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
        (["mnist", "--mirror", "https://mirror"], {}, f"--mirror {fake_only}"),
        (["mnist", "--from", "x"], {}, f"--from {fake_only}"),
        (
            ["mnist"],
            {"FAKE_DATASET": "0", "COTENANT_MIRROR": "mirror"},
            (
                "The mirror (--mirror, COTENANT_MIRROR) is no plain base URL: http, https or file, and no '?', '#' or"
                " password."
                " Give one such as https://mirror.example/data or file:///mnt/data."
            ),
        ),
    ):
        with patch.dict(os.environ, variables):
            assert main(words) == 2
        assert capsys.readouterr().err == f"error: {sentence}\n"
    with pytest.raises(SystemExit, match="2"):
        main(["mnist", "--sizes", "small"])
    assert "unrecognized arguments: --sizes" in capsys.readouterr().err
    assert requests == []


def test_which_real_set(requests, monkeypatch):
    monkeypatch.setenv("FAKE_DATASET", "0")
    for words, variables, wanted in (
        ([], {}, ("all", "small", None, None)),
        (["--size", "full"], {"USE_VALIDATION": "0"}, ("all", "full", None, None)),
        (["--mirror", "https://m/"], {"COTENANT_MIRROR": "ftp://x"}, ("all", "small", "https://m", None)),
        ([], {"USE_VALIDATION": "1", "COTENANT_DATA_FROM": "/mine"}, ("validation", "small", None, "/mine")),
        (["--from", "/mine"], {"DATASET_SIZE": "full", "COTENANT_MIRROR": ""}, ("all", "full", None, "/mine")),
    ):
        with patch.dict(os.environ, variables):
            assert main(["mnist", "ml_20m", "--root", "/r", *words]) == 0
        mnist, ml_20m = requests
        requests.clear()
        assert (mnist.half, mnist.size, mnist.mirror, str(mnist.local) if mnist.local else None) == wanted
        assert str(mnist.folder) == "/r/mnist"
        assert ml_20m.half == "all"  # It has no smaller half.


def test_the_list_makes_nothing(requests, tmp_path, capsys, monkeypatch):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["set", *NAMES]
    assert lines[1].split()[1:9] == ["5.5", "MB", "55", "MB", "55", "MB", "12", "MB"]
    assert "no  ImageNet: not there" in lines[2]
    monkeypatch.setenv("FAKE_DATASET", "0")
    monkeypatch.setenv("USE_VALIDATION", "1")
    assert main(["--list", "coco"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[1:9] == ["31", "MB", "14", "GB", "835", "MB", "1.1", "GB"]
    assert list(tmp_path.iterdir()) == []
    assert requests == []


def test_one_set_is_made_found_and_listed(host, tmp_path, capsys, monkeypatch):
    (tmp_path / "data" / "ml-20m").mkdir(parents=True)
    (tmp_path / "data" / "ml-20m" / "mine").write_text("")
    assert main(["wikitext", "--root", "data"]) == 0
    capsys.readouterr()
    assert main(["wikitext", "--root", "data"]) == 0
    assert capsys.readouterr().err == f"wikitext: present (small) in {tmp_path}/data/wikitext-2\n"
    assert main(["wikitext", "--list", "--root", "data"]) == 0
    assert "wikitext-2: small" in capsys.readouterr().out
    assert main(["wikitext", "ml_20m", "--root", "data"]) == 97
    assert "may be your own" in capsys.readouterr().err
    # A runner starts the command for each benchmark, and reports a person's own files itself.
    monkeypatch.setenv("COTENANT_RUN", "7-1-1")
    assert main(["wikitext", "ml_20m", "--root", "data"]) == 97
    assert capsys.readouterr().err == ""


def test_all_of_them_together_find_room_or_do_not(host, tmp_path, capsys, monkeypatch):
    sizes = [find_dataset(name).sizes["small"].estimated_bytes for name in ("coco", "imagenet")]
    for free_bytes, status in ((sum(sizes), 0), (sum(sizes) - 1, 2)):
        monkeypatch.setattr("cotenant.datasets.disk.free_disk_bytes", lambda path, free=free_bytes: free)
        assert main(["coco", "imagenet", "--check-room"]) == status
    assert capsys.readouterr().err.startswith("error: What is missing of coco, imagenet needs 62 MB and ")
    assert list(tmp_path.iterdir()) == []


def test_how_it_ends(host, capsys, monkeypatch):
    for problem, status, words in (
        (KeyboardInterrupt(), 130, "Interrupted. What is complete or has arrived is kept"),
        (ModuleNotFoundError(name="PIL"), 2, "error: The package 'pillow' is missing. pip"),
        (ModuleNotFoundError(name="numpy"), 2, "error: The package 'numpy' is missing. pip"),
        (CotenantError("Wrong.", "Mend it."), 2, "error: Wrong. Mend it."),
    ):
        monkeypatch.setattr(command, "obtain", Mock(side_effect=problem))
        assert main(["mnist"]) == status
        assert capsys.readouterr().err.startswith(words)
