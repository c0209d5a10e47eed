"""The hash of a benchmark's source changes with its work, and with nothing else."""

from pathlib import Path

import pytest

from cotenant.suite import task_source
from cotenant.suite.task_source import version_of


def test_a_changed_file_or_block_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layers, task = tmp_path / "layers", tmp_path / "task" / "main.py"
    for path, text in {
        task: "import torch\nimport model\n",
        task.with_name("model.py"): "from cotenant.layers import one\nfrom cotenant.layers.two import thing\n",
        layers / "one.py": "import cotenant.layers.three\n",
        layers / "two.py": "",
        layers / "three.py": "from cotenant.layers import one\n",
        layers / "four.py": "",
    }.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(task_source, "LAYERS", layers)
    before = version_of(task)
    assert before == version_of(task)
    for path in (task, task.with_name("model.py"), *(layers / f"{name}.py" for name in ("one", "two", "three"))):
        text = path.read_text()
        path.write_text(text + "# changed\n")
        assert version_of(task) != before, path
        path.write_text(text)
    for unused in (layers / "four.py", task.with_name("notes.txt")):
        unused.write_text("changed")
        assert version_of(task) == before
    task.write_text("this is no Python")
    assert version_of(task) != before
