from __future__ import annotations

from cotenant.machine.accelerators import peak_of, peaks, visible_positions

UUIDS = ("GPU-aaaa-1", "GPU-aabb-2", "GPU-cccc-3", "GPU-dddd-4")


CHOSEN: dict[str, tuple[int, ...]] = {
    "0": (0,),
    "2,0": (2, 0),
    " 1 , 3 ": (1, 3),
    "0,-1,1": (0,),
    "0,9,1": (0,),
    "0,,1": (0,),
    "1gpu,2": (1, 2),
    "GPU-cccc-3": (2,),
    "GPU-dd,GPU-aaaa": (3, 0),
    "GPU-cccc-3,GPU-aa,GPU-dddd-4": (2,),
    "GPU-cccc-3,1": (2,),
    "1,GPU-cccc-3": (1,),
    "GPU-cccc-3,": (2,),
}
NOTHING = ("", "-1", "1,1", "0,1,0", "none", "NoDevFiles", "GPU-aa", "GPU-cccc-3,GPU-cc", "GPU-ffff")


def test_select() -> None:
    for value, chosen in (CHOSEN | dict.fromkeys(NOTHING, ())).items():
        assert visible_positions(value, UUIDS) == chosen, value


PEAKS = {
    ("Tesla V100-SXM2-16GB", "fp16"): 125,
    ("Tesla V100-PCIE-32GB", "fp32"): 14,
    ("NVIDIA A100-SXM4-80GB", "bf16"): 312,
    ("NVIDIA A10", "bf16"): 125,
    ("NVIDIA H100 80GB HBM3", "tf32"): 494.5,
    ("NVIDIA H100 PCIe", "bf16"): 756.5,
    ("NVIDIA H200", "bf16"): 989.5,
    ("NVIDIA H200 NVL", "bf16"): 835.5,
    ("NVIDIA GeForce RTX 4090", "fp32"): 82.6,
    ("AMD Instinct MI250X / MI250", "fp16"): 191.5,
    ("AMD Instinct MI60 / MI50", "fp32"): 14.7,
    ("NVIDIA GH200 480GB", "bf16"): 989.5,
    ("NVIDIA H800", "tf32"): 494.5,
    ("NVIDIA H800 PCIe", "bf16"): 756.5,
    ("NVIDIA H20", "bf16"): 148,
    ("NVIDIA H20-3e", "tf32"): 74,
    ("NVIDIA GB200", "bf16"): 2500,
    ("NVIDIA L40", "bf16"): 181.05,
    ("NVIDIA L40S", "bf16"): 362,
    ("NVIDIA RTX 6000 Ada Generation", "fp16"): 364.25,
}
UNKNOWN = {
    "fp32": (
        "A10G",
        "GeForce RTX 3090 Ti",
        "GeForce RTX 4090 Laptop GPU",
        "GeForce RTX 4090 D",
        "A40-48Q",
        "EPYC 7452",
    ),
    "bf16": ("GB300", "L40G", "RTX A6000", "Quadro RTX 6000", "A100-SXM4-80GB MIG 1g.10gb", "V100-SXM2-16GB", ""),
    "fp64": ("H200",),
}


def test_devices_that_are_known_and_those_that_are_not_guessed() -> None:
    for (device, precision), tflops in PEAKS.items():
        peak = peak_of(device, precision)
        assert peak is not None, device
        assert peak.tflops == tflops, device
        assert peak.source
    for precision, devices in UNKNOWN.items():
        for device in devices:
            assert peak_of(f"NVIDIA {device}", precision) is None, device


def test_each_peak_is_unique_and_faster_formats_are_not_slower() -> None:
    table = {(one.pattern, one.precision): one.tflops for one in peaks()}
    assert len(table) == len(peaks())
    for pattern in {one.pattern for one in peaks()}:
        known = [table[pattern, name] for name in ("fp32", "tf32", "bf16", "fp16") if (pattern, name) in table]
        assert known == sorted(known)
        assert (pattern, "fp32") in table
