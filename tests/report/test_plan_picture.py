"""The picture of a plan as a person sees it, at 80 and 120 columns, with and without colour."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from cotenant.api.planning import Document, MachinePlan
from cotenant.isolation.choose import Chosen
from cotenant.isolation.plan import Policy, plan, tenants_by_default
from cotenant.isolation.unenforced import Affinity
from cotenant.machine.topology import Machine, discover
from cotenant.report.plan_picture import letters_of, print_plan
from golden import check_golden
from machine import fleet
from machine.fakehost import node

GOLDEN = Path(__file__).parent / "golden"
Host = Callable[[Path], Machine]


def document(machine: Machine, users: int | None = None, policy: Policy = "cores") -> Document:
    made = plan(machine, tenants_by_default(machine, users), policy=policy)
    return MachinePlan(machine, made, Chosen(Affinity()), policy, "local").document


def picture(shown: Document, width: int = 80, **options: object) -> str:
    text = io.StringIO()
    settings: dict[str, object] = {"color_system": None} | options
    print_plan(shown, Console(file=text, width=width, **settings))  # type: ignore[arg-type]
    return text.getvalue()


def pair(root: Path) -> Machine:
    """A host of two processors."""
    return fleet.host(root, fleet.siblings(2, 1), node_gib=(7.6,), name="pair")


def quartet(root: Path) -> Machine:
    """A host of two cores with two processors each, and two devices."""
    return fleet.host(root, fleet.siblings(2, 2), node_gib=(15.6,), devices=fleet.boards((0, 0)), name="quartet")


@pytest.mark.parametrize(
    ("host", "users", "policy", "width"),
    [
        (pair, None, "cores", 80),
        (quartet, 6, "cores", 80),
        (fleet.desktop, 2, "contiguous", 80),
        (fleet.dgx, 3, "cores", 80),
        (fleet.dgx, 3, "cores", 120),
    ],
)
def test_golden(tmp_path: Path, host: Host, users: int | None, policy: Policy, width: int) -> None:
    shown = picture(document(host(tmp_path), users, policy), width)
    check_golden(GOLDEN / f"plan-{host.__name__}-{width}.txt", shown)


@pytest.mark.parametrize(
    "host",
    [fleet.laptop, fleet.nps4, fleet.power, fleet.mig, fleet.container, fleet.offline, fleet.far_memory, fleet.single],
)
def test_the_plan_picture_fits_and_shows_every_tenant(tmp_path: Path, host: Host) -> None:
    shown = document(host(tmp_path))
    idle = sum(not tenants for box in shown["boxes"] for core in box["cores"] for tenants in core["tenants"])
    for width in (80, 120, 200):
        lines = picture(shown, width, force_terminal=True).splitlines()
        assert max(map(len, lines)) <= min(width, 120)
        cells = "".join(re.findall(r"│ +\d+  ([A-Za-z -]+?)(?:  \w[\w ]+)? +│", "\n".join(lines)))
        assert cells.count("-") == idle
        for tenant in shown["tenants"]:
            name = letters_of(tenant["tenant"], len(shown["tenants"]))
            assert cells.count(name) == tenant["processor_total"]
            assert any(line.split()[:2] == [name, str(tenant["tenant"])] for line in lines)


def test_colour_only_repeats_the_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = document(fleet.laptop(tmp_path), 3)
    plain = picture(shown, force_terminal=True)
    coloured = picture(shown, color_system="256", force_terminal=True)
    assert "\x1b[" not in plain
    assert "\x1b[30;48;5;117mA\x1b[0m" in coloured
    assert Text.from_ansi(coloured).plain.rstrip() == plain.rstrip()

    monkeypatch.setenv("NO_COLOR", "1")
    assert "48;5" not in picture(shown, color_system="256", force_terminal=True)
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[" not in picture(shown, color_system="auto")


def test_a_terminal_without_line_drawing(tmp_path: Path) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, "ascii", write_through=True)
    print_plan(document(fleet.dgx(tmp_path)), Console(file=file, width=80, color_system=None))
    assert b"+- socket 0, node 0, 1008 GiB" in raw.getvalue()


def test_the_memory_of_a_node_stands_once(tmp_path: Path) -> None:
    """Of a node of two sockets in the first of them, of nodes that overlap in the one that is shown."""
    sockets = document(fleet.host(tmp_path / "sockets", fleet.siblings(4), packages=lambda p: p % 2))
    assert [(box["package"], box["memory_bytes"] >> 30) for box in sockets["boxes"]] == [(0, 64), (1, 0)]
    two = fleet.host(tmp_path / "two", fleet.siblings(4), lambda p: p // 2, node_gib=(8, 8), packages=lambda p: p % 2)
    assert [line for line in picture(document(two)).splitlines() if "socket 0" in line or "socket 1" in line][-2:] == [
        "╭─ socket 0, node 0, 8.000 GiB ─╮╭─ socket 0, node 1, 8.000 GiB ─╮",
        "╭─ socket 1, node 0 ────────────╮╭─ socket 1, node 1 ────────────╮",
    ]
    for number in (0, 1):
        node(tmp_path / "sockets", number, "0-7", 32 << 20)
    fake = document(discover(tmp_path / "sockets", environ={}))
    assert [(box["node"], box["memory_bytes"] >> 30) for box in fake["boxes"]] == [(0, 64), (0, 0)]


def test_devices_of_an_unknown_node_stand_apart(tmp_path: Path) -> None:
    machine = fleet.host(
        tmp_path, fleet.siblings(8), lambda p: p // 4, node_gib=(32, 32), devices=fleet.boards((-1, -1))
    )
    assert re.search(r"╭─ on an unknown node ─+╮ +\n│ NVIDIA H200  0 A  1 B +│", picture(document(machine)))


def test_findings_come_with_their_remedies_and_the_worst_first(tmp_path: Path) -> None:
    lines = picture(document(fleet.mig(tmp_path), 3), 120).splitlines()
    assert [line.partition(":")[0] for line in lines[-3:]] == ["warning", "info", "info"]
    assert lines[-3].endswith("it uses the first. Use --users 7 for an instance each.")


def test_names() -> None:
    pairs = ((0, 2), (51, 52), (0, 53), (52, 53), (519, 520), (520, 521), (None, 2), (None, 60))
    assert [letters_of(*pair) for pair in pairs] == ["A", "z", "A0", "F2", "z9", "F20", "-", "--"]
    for total in (1, 52, 53, 400):
        assert len({letters_of(tenant, total) for tenant in range(total)}) == total
