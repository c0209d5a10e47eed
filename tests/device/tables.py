"""Write docs/gpu/null-device.md: what every task does on the null device.

PYTHONPATH=tests:common python -m device.tables > docs/gpu/null-device.md        some minutes
"""

from __future__ import annotations

from device.jobs import ARTEFACTS, REASONS, SMALL
from device.null.build import built
from device.test_tasks import PRECISIONS, run
from device.zygote import Ended, Zygote

HEAD = f"""# On the null device

All of this page is of a **null device**: torch's own host side for CUDA (allocator, autograd, streams, capture of
graphs, autocast) over a driver that computes nothing ([tests](../testing.md)). It says what would run, in which dtype
and with how many waits of the host. It says nothing of speed, of numbers that are computed, or of what a real driver
refuses. `PYTHONPATH=tests:common python -m device.tables` writes it anew; flags make each task small.

Every memory reads as zeros there. So losses are 0, and these findings are of the null device and not of a task:
`constant_input`, {", ".join(f"`{rule}`" for rule in sorted(ARTEFACTS))}. `mask_rcnn` finds no boxes, so its steps are
those of an image without objects. Convolutions take no workspace. cuDNN's attention is not there: torch's own flash
attention runs in its place. NCCL's ranks meet and send nothing, and cuSOLVER's
workspaces have one size.

## Precisions

A cell names the dtypes of all products of a step, and how often the host waits for the device in one, where it does.
"""
GRAPHS = """
## With --graph

In bf16. `recorded`: the step was captured and replayed, and an audit fitted beside it.
"""


def main() -> None:
    zygote = Zygote(built())
    print(HEAD)
    print(f"| task | {' | '.join(PRECISIONS)} |")
    print("|---" * (len(PRECISIONS) + 1) + "|")
    for task in SMALL:
        print(
            f"| {task} |",
            " | ".join(_cell(run(zygote, task, *words)) for words in PRECISIONS.values()),
            "|",
            flush=True,
        )
    print("\nWhy a step waits:\n")
    print("\n".join(f"- `{task}` {reason}." for task, reason in REASONS.items()))
    print(GRAPHS)
    print("| task | --graph |\n|---|---|")
    for task in SMALL:
        print(f"| {task} | {_recorded(run(zygote, task, '--precision', 'bf16', '--graph'))} |", flush=True)
    zygote.close()


def _cell(ended: Ended) -> str:
    if ended.record.get("outcome") != "completed":
        return _outcome(ended)
    waits = f", {max(ended.waits)} waits" if max(ended.waits) else ""
    return " + ".join(ended.record["observed"]["products"]) + waits


def _recorded(ended: Ended) -> str:
    return "recorded" if ended.record.get("outcome") == "completed" else _outcome(ended)


def _outcome(ended: Ended) -> str:
    words = ended.record.get("message") or ended.err.strip().splitlines()[-1].partition(": ")[2]
    return f"`{ended.record.get('outcome', 'unsupported')}`: {words}".replace("|", "/")


if __name__ == "__main__":
    main()
