"""Words that earlier versions understood, each with the sentence on what to use instead.

A key is a command (`history`), a flag (`--graph`), a flag of one command (`fleet --tier`) or a flag's value
(`--baseline quick`). docs/decisions/0012-let-go.md has the reasons.
"""

from __future__ import annotations

REMOVED: dict[str, str] = {
    "--graph": "Use --compile=reduce-overhead, which has torch record the models in CUDA graphs.",
    "--no-graph": "Leave it out: models are recorded in CUDA graphs with --compile=reduce-overhead alone.",
}


def removed(word: str, *places: str) -> str:
    """Return the sentence on a removed word, looked up alone and behind each of the `places`; "" if it is not one."""
    keys = [word, *(f"{place} {word}" for place in places)]
    return next((REMOVED[key] for key in keys if key in REMOVED), "")
