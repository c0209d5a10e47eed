"""Does torch see the devices that the host has, and compute on them rightly?"""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import listed


def ask(facts: Facts) -> Answer | None:
    test, boards = facts.self_test, {device.pci for device in facts.machine.accelerators}
    if test is None or test.died or test.torch_error or not (boards or test.devices):
        return None
    if wrong := [f"device {index}: {error}" for index, error in enumerate(test.devices) if error]:
        finding = Finding(
            "device_wrong",
            "error",
            f"A small product on a device failed: {listed(wrong)}.",
            "Check that this torch was built for it (python -m torch.utils.collect_env), and reset the device.",
        )
        return Answer(f"{len(wrong)} of {len(test.devices)} fail", (finding,))
    # Partitions of a device: one process is shown a single one.
    if len(test.devices) < len(boards):
        remedy = "Install the wheel for these devices: pip install torch torchvision, or see https://pytorch.org"
        if test.built_for != "cpu":
            remedy = "Update the driver, or install a torch built for the one there is (nvidia-smi says which CUDA)."
        sentence = f"torch ({test.built_for}) sees {len(test.devices)} of {len(boards)} devices."
        return Answer("torch does not see all", (Finding("device_unseen_by_torch", "error", sentence, remedy),))
    return Answer(f"{len(test.devices)} compute rightly")


CHECK = Check("software", "device self-test", ask)
