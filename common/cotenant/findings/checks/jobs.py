"""Needs of the jobs on this host: room on disks, a torch that works, and input."""

from __future__ import annotations

from cotenant.finding import Finding, error, info, warning
from cotenant.findings import Inspection, check
from cotenant.findings.facts import Facts, SelfTest
from cotenant.machine.space import Disk
from cotenant.machine.wheels import INDEX
from cotenant.text import gib, listed, many, verb

LITTLE_BYTES, NO_BYTES = 5 << 30, 64 << 20
OTHER_PLACE = "Name another place: --outdir for records, DATA_DIRECTORY for data, BASE for everything."
OPERATORS_MISSING = "torchvision::"
"""Part of the error of a torchvision whose compiled half was built for another torch: it registers no operators."""
ABSENT = "No module named 'torch'"


@check("disk", "free disk", every_suite=True)
def free_disk(facts: Facts) -> Inspection:
    """Room for records, data and temporary files."""
    for disk in facts.disks:
        where = f"{disk.path}, where {_purposes(disk)} go,"
        if not disk.writable and disk.purposes == ("data",):
            remedy = "Existing sets can be read; name another DATA_DIRECTORY if sets have to be made."
            yield info(f"{where} cannot be written.", remedy, rule="not_writable")
        elif not disk.writable:
            yield error(f"{where} cannot be written.", OTHER_PLACE, rule="not_writable")
        elif disk.free_bytes < LITTLE_BYTES:
            # Data that are there already need no room.
            severity = error if disk.free_bytes < NO_BYTES and disk.purposes != ("data",) else warning
            yield severity(f"{where} has {gib(disk.free_bytes)} free.", f"Free some. {OTHER_PLACE}", rule="disk_full")
    return "; ".join(f"{gib(disk.free_bytes)} free for {_purposes(disk)} ({disk.path})" for disk in facts.disks)


def _purposes(disk: Disk) -> str:
    return " and ".join(disk.purposes)


@check("software", "torch")
def torch(facts: Facts) -> Inspection:
    """torch and torchvision, which have to be a pair: a wrong pair breaks everything that imports torchvision."""
    test = facts.self_test
    if test is None:
        return None
    if test.timed_out:
        yield warning(
            f"A process that imports torch {test.died}: the disk is slow, or the machine is busy.",
            "Ask again: files that were read once are cached. If jobs do not get ready, give a larger --ready-timeout.",
            rule="torch_slow",
        )
        return "torch did not answer in time"
    if test.died:
        yield error(
            f"A process that imports torch {test.died}.",
            "Rebuild the environment: remove .venv and start ./run.sh.",
            rule="torch_broken",
        )
        return "torch cannot be asked"
    if ABSENT in test.torch_error:
        yield warning(
            "torch is not installed: benchmarks cannot run. Records can be read without it.",
            "pip install '.[torch]' in a checkout, or 'WHEEL[torch]'.",
            rule="torch_absent",
        )
        return "not installed"
    if test.torch_error:
        yield error(
            f"torch cannot be imported: {test.torch_error}.", "pip install -r requirements.txt", rule="torch_broken"
        )
        return "torch does not import"
    if test.vision_error:
        yield _vision_broken(test)
    return f"torch {test.torch} for {test.built_for}, torchvision {test.vision or 'missing'}"


def _vision_broken(test: SelfTest) -> Finding:
    release = fitting_torchvision(test.torch)
    wanted = f"'torchvision=={release}.*'" if release else "torchvision"
    remedy = f"pip install --force-reinstall --no-deps {wanted} --index-url {INDEX}/{test.built_for}"
    if OPERATORS_MISSING in test.vision_error or not belongs(test.torch, test.vision):
        return error(
            f"torchvision {test.vision} was not built for torch {test.torch} ({test.built_for}): {test.vision_error}. "
            "Every import of it fails, too.",
            remedy,
            rule="torchvision_mismatch",
        )
    return error(f"torchvision cannot be imported: {test.vision_error}.", remedy, rule="torchvision_broken")


def belongs(torch_version: str, vision_version: str) -> bool:
    """Return whether these versions were released as a pair: torch 2.N with torchvision 0.(N + 15) since 2.0."""
    release, parts = fitting_torchvision(torch_version), vision_version.split(".")
    return release is None or len(parts) < 2 or f"0.{parts[1]}" == release


def fitting_torchvision(torch_version: str) -> str | None:
    """Return the torchvision release, `0.29`, that came with this torch, None for a version of another scheme."""
    major, _, rest = torch_version.partition(".")
    minor = rest.partition(".")[0]
    return f"0.{int(minor) + 15}" if major == "2" and minor.isdecimal() else None


@check("software", "LAPACK")
def lapack(facts: Facts) -> Inspection:
    """Linear algebra in torch: a build without LAPACK fails at the first QR decomposition, often hours into a suite."""
    test = facts.self_test
    if test is None or test.died or test.torch_error:
        return None
    if not test.lapack_error:
        return "a QR decomposition is right"
    yield error(
        f"torch cannot decompose a matrix (QR): {test.lapack_error}.",
        "Install an official torch wheel (pip install -r requirements.txt), or build torch with LAPACK or MKL.",
    )
    return "missing or wrong"


@check("software", "apex")
def apex(facts: Facts) -> Inspection:
    """The optimizers of benchmarks: NVIDIA apex's, or torch's own fused ones."""
    if facts.self_test is None:
        return None
    if not any(device.vendor == "nvidia" for device in facts.machine.accelerators):
        return "not used without an NVIDIA device; torch's own fused optimizers are"
    if facts.apex == "built":
        return "used in fp32, tf32 and bf16; with a gradient scaler (fp16) torch's own fused optimizers are"
    if facts.apex != "missing":
        yield info(
            f"The package apex is {facts.apex}, so that its optimizers cannot be used.",
            "Build NVIDIA's apex with its CUDA extensions, or remove the package.",
            rule="apex_unusable",
        )
    return "not used; torch's own fused optimizers are"


@check("software", "device self-test")
def device_self_test(facts: Facts) -> Inspection:
    """The host's devices that torch sees, and a small computation on each."""
    test, boards = facts.self_test, {device.pci for device in facts.machine.accelerators}
    if test is None or test.died or test.torch_error or not (boards or test.devices):
        return None
    if wrong := [f"device {index}: {error}" for index, error in enumerate(test.devices) if error]:
        yield error(
            f"A small product on a device failed: {listed(wrong)}.",
            "Check that this torch was built for it (python -m torch.utils.collect_env), and reset the device.",
            rule="device_wrong",
        )
        return f"{len(wrong)} of {len(test.devices)} fail"
    # Of a device's partitions a process sees a single one.
    if len(test.devices) < len(boards):
        remedy = (
            "python -m cotenant.machine.wheels names the build for these devices and this driver: pip install "
            f"--force-reinstall torch torchvision --index-url {INDEX}/<build>"
        )
        sentence = f"torch ({test.built_for}) sees {len(test.devices)} of {len(boards)} devices."
        yield error(sentence, remedy, rule="device_unseen_by_torch")
        return "torch does not see all"
    return f"{len(test.devices)} compute rightly"


@check("software", "jobs")
def startable(facts: Facts) -> Inspection:
    """The chosen jobs that can be started: their commands, arguments and slices make sense here."""
    if facts.jobs is None:
        return None
    refused = [job.refusal for job in facts.jobs if job.refusal is not None]
    yield from dict.fromkeys(refused)
    return f"{len(facts.jobs) - len(refused)} of {len(facts.jobs)} can be started"


@check("data", "input")
def job_input(facts: Facts) -> Inspection:
    """The input of the chosen jobs."""
    if facts.jobs is None:
        return None
    readers = [job for job in facts.jobs if job.reads]
    lacking = [job for job in readers if job.missing]
    if not lacking:
        if not readers:
            return "no job reads files"
        return f"there for {many(len(readers), 'job')} that {verb(len(readers), 'reads', 'read')} files"
    for job in lacking:
        if not job.made:
            yield error(
                f"The input of {job.name} is missing: {listed(job.missing)}.",
                "Put it there, or name another place in DATA_DIRECTORY.",
                rule="missing_data",
            )
    if made := sorted({job.name for job in lacking if job.made}):
        yield info(
            f"The input of {listed(made)} is not there yet.",
            "A suite makes it at its start; ./download_datasets.sh makes it now.",
            rule="data_to_be_made",
        )
    return f"missing for {len(lacking)} of {len(readers)} jobs that read files"
