"""Words that earlier versions understood, each with the sentence on what to use instead.

A key is a command (`history`), a flag (`--graph`), a flag of one command (`fleet --tier`) or a flag's value
(`--baseline quick`). docs/decisions/0012-let-go.md has the reasons.
"""

from __future__ import annotations

REMOVED: dict[str, str] = {
    "fleet report": "`report DIR` shows hosts side by side, and names one that is slower than its like or has less.",
    "fleet --tier": "--budget gives each launch its seconds, --name chooses jobs, and another --uid repeats them.",
    "fleet --rounds": "Run the suite again with another --uid: `report` takes all repetitions together.",
    "fleet --node-base": "A node works below this host's BASE: BASE=DIR in front of the command names another.",
    "fleet --nodes": "The command names every living node at its start, and each that is lost.",
    "fleet --group": "`compare A B --allow host` holds the records of two groups of hosts against each other.",
    "fleet --resources": "`report --format csv` has a row for each job and host.",
    "fleet --parquet": "`export DIR --out rows.parquet` has a row for each record.",
    "fleet --html": "`report DIR --html page.html` has the hosts of a gathered directory.",
    "fleet --format": "`report DIR --table hosts --format json` has the hosts of a gathered directory.",
    "history": "`export` writes a row per record, with its start and versions, for a database or a notebook.",
    "--baseline merged": "Use --baseline blocks, or --duet to compare two commands.",
    "--merged": "Use --baseline blocks, or --duet to compare two commands.",
    "--finish": "Run the program by itself where it has to come to its own end.",
}


def removed(word: str, *places: str) -> str:
    """Return the sentence on a removed word, looked up alone and behind each of the `places`; "" if it is not one."""
    keys = [word, *(f"{place} {word}" for place in places)]
    return next((REMOVED[key] for key in keys if key in REMOVED), "")
