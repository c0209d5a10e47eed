"""Batch sizes by memory class: sizes from the table, and tables that are refused."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from commands.calling import refusal
from cotenant.suite.sizes import CLASSES, CPU, MEMORY_CLASSES, Size, SizeTable, load_sizes, memory_class

GIB = 1 << 30
TABLE = """
[resnet50]
fp32 = { cpu = 2, 16gb = 128, 80gb = 640 }
bf16 = { 16gb = 256, 80gb = 1280 }
tf32 = { 16gb = 130 }
args.cpu = { --size = 64, --arch = "tiny" }
args.80gb = { --number = 20 }

[devices."RTX 2080 Ti".resnet50]
fp32 = 88
"""


def table(tmp_path: Path, text: str = TABLE) -> SizeTable:
    path = tmp_path / "batch_sizes.toml"
    path.write_text(text)
    return load_sizes(path)


def test_the_class_is_the_largest_that_a_part_of_a_device_holds() -> None:
    # As drivers report them: T4, V100, 4090, A100 of 40 GB, L40S, H100 (and parts of some), H200, H100 NVL, B200.
    for mib, name in [
        *((15360, "16gb"), (32510, "32gb"), (24564, "24gb"), (40960, "40gb"), (40960 // 2, "16gb"), (49140, "48gb")),
        *((81559, "80gb"), (81559 // 2, "40gb"), (81559 // 8, "8gb"), (143771, "140gb"), (143771 // 2, "48gb")),
        *((95830, "96gb"), (183359, "192gb"), (6144, None), (0, None)),
    ]:
        assert memory_class(mib << 20) == name, mib
    assert memory_class(None) == CPU


def test_lookups(tmp_path: Path) -> None:
    sizes = table(tmp_path)
    of_80gb, of_cpu = (("--number", 20),), (("--size", 64), ("--arch", "tiny"))
    for precision, name, device, size in [
        ("fp32", "16gb", "", Size("16gb", 128)),
        ("fp32", "32gb", "", Size("16gb", 128)),
        ("fp32", "140gb", "V100", Size("80gb", 640, of_80gb)),
        ("fp32", CPU, "", Size(CPU, 2, of_cpu)),
        ("tf32", "80gb", "", Size("16gb", 130)),
        ("fp16", "80gb", "", Size("80gb", 1280, of_80gb)),
        ("fp32", "8gb", "", None),
        ("bf16", CPU, "", None),
        ("fp32", "8gb", "RTX 2080 Ti", Size("8gb", 88)),
        ("tf32", "8gb", "RTX 2080 Ti", Size("8gb", 88)),
        ("bf16", "16gb", "RTX 2080 Ti", Size("16gb", 256)),
    ]:
        assert sizes.size_of("resnet50", precision, name, device) == size, (precision, name, device)


def test_a_missing_size_is_an_error_with_the_line_to_add(tmp_path: Path) -> None:
    for family, precision, message in [
        ("resnet5", "fp32", "no batch size of 'resnet5' in fp32. Did you mean 'resnet50'? Add below [resnet5]: fp32 ="),
        ("resnet50", "int8", "of 'resnet50' in int8. Add below [resnet50]: int8 = { 16gb = 1 }"),
    ]:
        refused = refusal(table(tmp_path).size_of, family, precision, "16gb")
        assert message in refused
        assert str(tmp_path / "batch_sizes.toml") in refused


def test_wrong_tables_are_refused_with_their_place(tmp_path: Path) -> None:
    for text, message in [
        ("[a", "cannot be read"),
        ("a = 3", "'a' is no table"),
        ("[a]\nfp32 = 3", "[a] fp32 is no table of classes"),
        ("[a]\nfp32 = { 20gb = 3 }", "[a] fp32 names the class '20gb'"),
        ("[a]\nfp32 = { 16gb = 0 }", "[a] fp32.16gb is 0"),
        ("[a]\nargs.cpu = { --x = [1] }", "[a] args.cpu is {'--x': [1]}"),
        ("[devices.x.a]\nfp32 = 1.5", '[devices."x".a]'),
        ("devices = 3", "'devices' is no table"),
    ]:
        refused = refusal(table, tmp_path, text)
        assert message in refused
        assert str(tmp_path) in refused
    assert "cannot be read" in refusal(load_sizes, tmp_path / "nowhere.toml")


LINES = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 10**7), min_size=1)


@given(LINES, st.sampled_from(CLASSES))
def test_a_memory_class_falls_back_to_the_next_smaller_one(line: dict[str, int], name: str) -> None:
    size = SizeTable(Path("x"), {"a": {"fp32": line}}, {}).size_of("a", "fp32", name)
    smaller = [
        known for known in CLASSES[: CLASSES.index(name) + 1] if known in line and (known == CPU) == (name == CPU)
    ]
    assert size == (Size(smaller[-1], line[smaller[-1]]) if smaller else None)


@given(st.integers(0, 1 << 40), st.integers(1, 64))
def test_more_tenants_never_have_a_larger_class(memory_bytes: int, tenants: int) -> None:
    order = [None, *MEMORY_CLASSES]
    whole, part = memory_class(memory_bytes), memory_class(memory_bytes // tenants)
    assert order.index(part) <= order.index(whole)
    assert part is None or MEMORY_CLASSES[part] * GIB * 0.9 * tenants <= memory_bytes
