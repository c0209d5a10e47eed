"""Words that earlier versions understood, each with a sentence on its replacement.

A key is a command (`history`), a flag (`--graph`), a flag of one command (`fleet --tier`) or a flag's value
(`--baseline quick`); `--jobs sense` is a key of a job file. docs/decisions/0012-let-go.md has the reasons.
"""

from __future__ import annotations

REMOVED: dict[str, str] = {
    "--share mig": "Leave --share out: an instance of MIG is a device, and each user gets one.",
    "--share dmem": "Use --share time: torch holds each user to its part of the device's memory.",
    "fleet report": "`report DIR` shows hosts side by side, and names each that is slower than equal ones or has less.",
    "fleet --tier": "--budget gives each launch its seconds, --name chooses jobs, and another --uid repeats them.",
    "fleet --rounds": "Run the suite again with another --uid: `report` takes all repetitions together.",
    "fleet --node-base": "A node works below this host's BASE: BASE=DIR in front of the command names another.",
    "fleet --nodes": "The command names every living node at its start, and each that is lost.",
    "fleet --group": "`compare A B --allow host` holds the records of two groups of hosts against each other.",
    "fleet --resources": "`report --format csv` has a row for each job and host.",
    "fleet --parquet": "`export DIR --out rows.parquet` has a row for each record.",
    "fleet --html": "`report DIR --html page.html` has the hosts of a gathered directory.",
    "fleet --format": "`report DIR --table hosts --format json` has the hosts of a gathered directory.",
    "--predict": "Measure the pairs: --pairs a,b,c launches each, and `report --table pairs` is their matrix.",
    "--sense": "Use --name JOBS --pressure RESOURCE for a job's curve, --pairs for each job beside each other.",
    "--jobs sense": "Use --name JOBS --pressure RESOURCE for a job's curve, and leave the entry out.",
    "--table sense": "Use --table pressure: a curve per job and resource.",
    "--pressure pcie": "Use --pressure dram or hbm, whose bandwidth such copies take.",
    "--pressure l2": "Use --pressure hbm, the memory behind that cache.",
    "--pressure launch": "Use --pressure sm.",
    "--pressure memory": "Use `capacity`: it finds how many users the memory holds.",
    "--graph": "Use --compile=reduce-overhead, which has torch record the models in CUDA graphs.",
    "--no-graph": "Leave it out: models are recorded in CUDA graphs with --compile=reduce-overhead alone.",
    "challenge": "Launch the suite on the machine yourself; `archive` and `verify` show what others have measured.",
    "--challenge": "Launch the suite on the machine yourself; `archive` and `verify` show what others have measured.",
    "--challenge-token": "Leave it out.",
    "--class": "A tuned job file is a suite of its own: --suite chooses it.",
    "--allow class": "Use --allow batch_size.",
    "archive --key": "Sign the archive with a tool of your own: `minisign`, `gpg --detach-sign`, `ssh-keygen -Y sign`.",
    "verify --key": "Check the signature with the tool that made it, then the archive without the flag.",
    "--cache": "The page cache is left alone; drop it by hand before the run: sync; echo 1 >/proc/sys/vm/drop_caches",
    "export --to": "Use --format.",
    "history": "`export` writes a row per record, with its start and versions, for a database or a notebook.",
    "--baseline quick": "Leave it out: if blocks are impossible, launches end with short runs of one user alone.",
    "--isolation systemd": "Use --isolation v2: the run starts itself again in a scope of systemd's if it has to.",
    "--baseline merged": "Use --baseline blocks, or --duet to compare two commands.",
    "--confirm": "Launch both again, best by turns, and compare the new launches; --duet compares two by turns itself.",
    "--solo": "Use --baseline whole.",
    "--active": "Use the number of users that `capacity` finds.",
    "--merged": "Use --baseline blocks, or --duet to compare two commands.",
    "tune --only": "Only the batch size is searched: launch a job with another flag after --, and compare.",
    "tune --allow": "Tune a job file whose jobs have that --precision.",
    "tune --measured": "Leave it out: each launch measures five seconds.",
    "tune --html": "Leave it out: each launch is printed as a line, and the job file holds it.",
    "--finish": "Run the program by itself if it has to come to its own end.",
}


def removed(word: str, *places: str) -> str:
    """Return the sentence on a removed word, looked up alone and behind each of the `places`; "" if it is not one."""
    keys = [word, *(f"{place} {word}" for place in places)]
    return next((REMOVED[key] for key in keys if key in REMOVED), "")
