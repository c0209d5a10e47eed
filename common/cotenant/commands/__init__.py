"""The commands, one module each, with no logic besides their flags."""

GROUPS = {
    "for your own programs": {
        "exec": "copies of your own program at once, and the rate each keeps",
        "capacity": "how many users this machine carries before one has too little",
    },
    "before a run, and while it runs": {
        "list": "the jobs of a suite: what each trains, on what, and how long it takes",
        "plan": "this machine, and the slice each user would get",
        "doctor": "problems of this host that would spoil numbers",
        "status": "which suite runs on this machine, and how far it is",
        "stop": "interrupt it: its records stay, and --resume goes on with it",
    },
    "after it": {
        "report": "rates and findings of records: in the terminal, as a page, as tables",
        "compare": "whether a second set of records is faster or slower, per job",
        "export": "a row per record or observation, or a file for Prometheus, Bencher, pyperf, asv ...",
        "archive": "a directory's records, logs and journal as one file that others can verify",
        "verify": "a check of such a file: hashes, journal, numbers",
        "mlbench-report": "the original suite's report: results against targets, failures, one score",
    },
    "for more": {
        "fleet": "a suite on every node of a Ray cluster at once, all records in one place",
        "tune": "the fastest batch size of each job here, as a job file",
        "new": "the skeleton of a benchmark with its test and a job file",
        "completion": "a script that lets bash, zsh or fish complete commands, flags and jobs",
    },
}
"""One line for each command, in the groups of `--help`. Without a command a suite is run."""
COMMANDS = {
    "run": "launch the jobs of a suite",
    **{name: what for group in GROUPS.values() for name, what in group.items()},
}
