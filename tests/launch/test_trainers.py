"""accelerate, Lightning and the Trainer of transformers as they are, each as two tenants, where the index has them."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tenants.suites import Suites, found

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
    loose.executes(python, "train.py", "out.{user}", flags=flags, limit_s=400, status=0)
    check(loose)


def test_accelerate_launch_with_two_ranks_in_each_copy(loose: Suites, python: Path) -> None:
    (loose.folder / "train.py").write_text(ACCELERATE)
    launcher = [python.with_name("accelerate"), "launch", "--cpu", "--num_processes", 2]
    loose.executes(*launcher, "train.py", flags="--baseline none --budget 2 --item row", limit_s=400, status=0)
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
