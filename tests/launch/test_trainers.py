"""accelerate, Lightning and the Trainer of transformers as they are, each as two tenants, where the index has them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from patience import HANG_S
from tenants.suites import ROOT, Suites, found

pytestmark = pytest.mark.slow
PACKAGES = ("accelerate", "lightning", "transformers")
ACCELERATE = """
import torch, accelerate
accelerator = accelerate.Accelerator(cpu=True)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4096, 32)), batch_size=16)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
while True:
    for (x,) in loader:
        optimizer.zero_grad(); accelerator.backward(model(x).square().mean()); optimizer.step()
"""
LIGHTNING = """
import torch, lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(32, 32)
    def training_step(self, batch, index): return self.layer(batch[0]).square().mean()
    def configure_optimizers(self): return torch.optim.Adam(self.parameters())
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4096, 32)), batch_size=16)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
lightning.Trainer(max_steps=10**6, accelerator="cpu", **quiet).fit(Model(), loader)
"""
TRANSFORMERS = """
import sys, torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
sizes = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=100)
model = BertForSequenceClassification(BertConfig(**sizes))
rows = [{"input_ids": torch.randint(100, (16,)), "labels": torch.tensor(0)} for _ in range(4096)]
quiet = dict(report_to=[], save_strategy="no", disable_tqdm=True, dataloader_pin_memory=False)
usual = dict(max_steps=10**6, use_cpu=True, per_device_train_batch_size=16)
Trainer(model, TrainingArguments(sys.argv[1], **quiet, **usual), train_dataset=rows).train()
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has these packages beside ours."""
    place = tmp_path_factory.mktemp("trainers") / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    ours = sysconfig.get_path("purelib")
    (next(place.glob("lib/python*/site-packages")) / "ours.pth").write_text(f"{ours}\n")
    install = [place / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    ended = subprocess.run(install, capture_output=True, text=True)
    if ended.returncode:
        pytest.skip(f"no index has {', '.join(PACKAGES)}: {ended.stderr.strip().splitlines()[-1]}")
    return place / "bin/python"


@pytest.mark.parametrize("text", [ACCELERATE, LIGHTNING, TRANSFORMERS], ids=PACKAGES)
def test_a_trainer_as_it_is_counts_steps_and_rows(loose: Suites, python: Path, text: str) -> None:
    (loose.folder / "train.py").write_text(text)
    flags = "--baseline none --budget 2 --item row"
    loose.executes(python, "train.py", "out.{user}", flags=flags, status=0)
    check(loose)


def test_accelerate_launch_with_two_ranks_in_each_copy(loose: Suites, python: Path) -> None:
    (loose.folder / "train.py").write_text(ACCELERATE)
    launcher = [python.with_name("accelerate"), "launch", "--cpu", "--num_processes", 2]
    loose.executes(*launcher, "train.py", flags="--baseline none --budget 2 --item row", status=0)
    check(loose)


def check(suites: Suites) -> None:
    records = suites.records()
    assert [(record["outcome"], record["unit"]) for record in records] == [("completed", "row")] * 2
    for record in records:
        number = record["given"]["number"]
        whole = [row["items"] / number for row in record["observations"]]
        # Whatever the trainer fetches ahead, a step is of 16 rows.
        assert abs(sum(whole) / len(whole) - 16) < 1
        assert not found(record, "other_steppers")
    suites.gone(2)


LOOP = """
import torch
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
while True:
    optimizer.zero_grad(); model(torch.randn(16, 32)).square().mean().backward(); optimizer.step()
"""


@pytest.fixture(scope="module")
def uvx(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """The words before `exec` of a wheel of this checkout, run by uvx: its environment has no torch."""
    folder = tmp_path_factory.mktemp("uvx")
    for line in (["-m", "venv", folder / "uv"], ["-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT]):
        subprocess.run([sys.executable, *line], check=True)
    ended = subprocess.run([folder / "uv/bin/pip", "install", "--quiet", "uv"], capture_output=True, text=True)
    if ended.returncode:
        pytest.skip(f"no index has uv: {ended.stderr.strip().splitlines()[-1]}")
    (wheel,) = folder.glob("*.whl")
    # Its cache is a new one: wheels of other checkouts have the same version.
    return [folder / "uv/bin/uvx", "--cache-dir", folder / "cache", "--from", wheel, "cotenant"]


@pytest.mark.parametrize("text", [LOOP, LIGHTNING, TRANSFORMERS], ids=["loop", "lightning", "transformers"])
def test_uvx_measures_the_python_on_the_path(loose: Suites, python: Path, uvx: list[str | Path], text: str) -> None:
    (loose.folder / "train.py").write_text(text)
    line = [*uvx, "exec", "--isolation", "affinity", "--outdir", loose.output, "--", "python", "train.py", "out.{user}"]
    path = f"{python.parent}:{os.environ['PATH']}"
    begin_s = time.monotonic()
    ended = loose.typed([*map(str, line)], HANG_S, status=0, PATH=path, VIRTUAL_ENV="", PYTHONPATH="")
    print(f"a wheel's first answer took {time.monotonic() - begin_s:.0f} s", file=sys.stderr)
    assert f"python: {python} (" in ended.stdout
    assert re.search(r"train: each user gets [\d.k]+ and [\d.k]+ step/s", ended.stdout), ended.stdout
    assert re.search(r"each user keeps \d+ % \(\d+ to \d+ % within one launch\)", ended.stdout), ended.stdout
    assert [record["outcome"] for record in loose.records()] == ["completed"] * 2
