"""How the tests of real sets obtain one, and what they find then."""

from dataclasses import replace
from pathlib import Path

from cotenant.datasets.makers.mnist import MNIST as FAKE_MNIST
from cotenant.datasets.makers.mnist import recipe
from cotenant.datasets.obtaining import obtain
from cotenant.datasets.real.order import RealOrder
from cotenant.datasets.transfer.attempt import Patience

IMPATIENT = Patience(timeout_s=20, tries=2, first_wait_s=0.001, longest_wait_s=0.01, progress_bytes=1)
FAKE = replace(FAKE_MNIST, sizes={"small": recipe(20, 10), "full": recipe(40, 20)})


def get(order: RealOrder) -> None:
    obtain(order, IMPATIENT)


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
