"""Descriptions of systems: those that come with the suite, and those of anybody's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.results.targets import System, read_systems, system_of

SHIPPED = read_systems(Path(__file__).resolve().parents[2] / "targets/systems.json")


def test_the_shipped_systems_have_names_of_their_own() -> None:
    assert len({one.name for one in SHIPPED}) == len(SHIPPED)
    assert all(one.price is None for one in SHIPPED)  # what a system costs is its buyer's to say
    assert all(one.watt is not None for one in SHIPPED)


@pytest.mark.parametrize(
    ("gpu", "devices", "name"),
    [
        ("Tesla V100-PCIE-16GB", 1, "V100"),
        ("Tesla V100-SXM2-32GB", 8, "8x V100 SXM2"),
        ("NVIDIA A100 80GB PCIe", 1, "A100 PCIe 80GB"),
        ("NVIDIA H200", 1, "H200"),
        ("NVIDIA L40S", 1, "L40S"),
        ("NVIDIA L4", 1, "L4"),
        ("AMD Instinct MI300X", 1, "MI300X"),
    ],
)
def test_devices_find_their_system(gpu: str, devices: int, name: str) -> None:
    found = system_of(SHIPPED, gpu, devices)
    assert found is not None
    assert found.name == name


def test_another_number_of_devices_is_another_system() -> None:
    assert system_of(SHIPPED, "NVIDIA H200", 3) is None


def test_own_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('[{"name": "mine", "gpu": "*", "devices": 2, "watt": 1000, "price": 9999.5}]')
    assert read_systems(path) == [System("mine", "*", 2, 1000, 9999.5)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "mine.json"),
        ("{}", "Expected `array`"),
        ('[{"name": "x"}]', r"missing required field `gpu` - at `\$\[0\]`"),
        ('[{"name": "x", "gpu": "*", "devices": 1, "what": 3}]', "unknown field `what`"),
        ('[{"name": "x", "gpu": "*", "devices": 1, "watt": 0}]', "numbers of 'x' have to be positive"),
        ('[{"name": "x", "gpu": "*", "devices": -1}]', "have to be positive"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(CotenantError, match=sentence):
        read_systems(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CotenantError, match="cannot be read"):
        read_systems(tmp_path / "none.json")
