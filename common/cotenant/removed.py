"""Words that earlier versions understood, each with the sentence on what to use instead.

A key is a command (`history`), a flag (`--graph`), a flag of one command (`fleet --tier`) or a flag's value
(`--baseline quick`). docs/decisions/0012-let-go.md has the reasons.
"""

from __future__ import annotations

REMOVED: dict[str, str] = {
    "challenge": "Launch the suite on the machine yourself; `archive` and `verify` show what others have measured.",
    "--challenge": "Launch the suite on the machine yourself; `archive` and `verify` show what others have measured.",
    "--challenge-token": "Leave it out.",
    "--cache": "The page cache is left alone; drop it by hand before the run: sync; echo 1 >/proc/sys/vm/drop_caches",
    "history": "`export` writes a row per record, with its start and versions, for a database or a notebook.",
    "--baseline quick": "Leave it out: where blocks cannot be had, launches go on with short runs of one user alone.",
    "--baseline merged": "Use --baseline blocks, or --duet to compare two commands.",
    "--confirm": "Launch both again, best by turns, and compare the new launches; --duet compares two by turns itself.",
    "--active": "Use the number of users that `capacity` finds.",
    "--merged": "Use --baseline blocks, or --duet to compare two commands.",
    "--finish": "Run the program by itself where it has to come to its own end.",
}


def removed(word: str, *places: str) -> str:
    """Return the sentence on a removed word, looked up alone and behind each of the `places`; "" if it is not one."""
    keys = [word, *(f"{place} {word}" for place in places)]
    return next((REMOVED[key] for key in keys if key in REMOVED), "")
