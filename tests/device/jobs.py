"""Every task that runs on a device, with flags that make it small, and the behaviour that tests expect of it there."""

from __future__ import annotations

from tasks.loading import SMALL, UNTRAINED

TEXT, SPEECH = "natural_language_processing", "speech_synthesis"
ATARI, CART, MASK_RCNN = "reinforcement/atari", "reinforcement/cart_pole", "object_detection/mask_rcnn"
DLRM, MOE, WLM = "recommendation/dlrm", f"{TEXT}/moe", f"{TEXT}/word_language_model"
# A width of 32 gives heads of 8 numbers, the fewest that torch's flash attention accepts.
FORMS = SMALL | {task: given | {"width": 32} for task, given in UNTRAINED.items()}
TASKS = sorted(FORMS)
FEW = ("--cuda", "--repeat", 2, "--number", 2, "--skip", 0)
PRECISIONS = {
    "bf16": ("--precision", "bf16"),
    "fp32": (),
    "tf32": ("--precision", "tf32"),
    "fp16": ("--precision", "fp16"),
    "half": ("--half",),
}

OF_ALL = ("fp32", "tf32", "bf16", "fp16")
WAITING: dict[str, dict[str, int]] = {
    ATARI: dict.fromkeys(OF_ALL, 4),
    CART: dict.fromkeys(OF_ALL, 2),
    DLRM: {"fp16": 1},
    MASK_RCNN: dict.fromkeys(OF_ALL, 30),
    MOE: dict.fromkeys(("fp32", "tf32", "fp16"), 12),
    WLM: dict.fromkeys(OF_ALL, 1),
}
"""Most waits for the device in one step of a task, by precision; docs/gpu.md says why."""
NOT_IN_HALF = {DLRM: "Tables have no fp32 copies to be stepped."}

ARTEFACTS = {"padding_counted", "mfu_impossible", "credited", "untimed"}
"""Errors that only the null device causes, since every number reads as zero there and no step takes time."""


def small(task: str) -> list[str]:
    """Return the flags for a few steps of a small form of a task."""
    words = [str(word) for word in FEW]
    for name, value in FORMS[task].items():
        words += ["--" + name.replace("_", "-"), *map(str, value if isinstance(value, tuple) else (value,))]
    return words
