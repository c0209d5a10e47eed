"""Writes the job file of a search: each job in its best setting, and under `tuned` the history of the search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cotenant.errors import CotenantError
from cotenant.launch.command import resolve_command
from cotenant.launch.tuning import Tuner
from cotenant.results.store import check_place, write_named
from cotenant.suite.decode import decode
from cotenant.suite.variables import Value
from cotenant.tuning.trial import estimates

OTHER_FILE = "--out names another file."


def write_tuned(path: Path, results: Sequence[Tuner], checkout: Path) -> None:
    """Write the jobs that have a rate. Raises CotenantError if the file cannot be written."""
    entries = [_entry(path, tuned, checkout) for tuned in results]
    write_named(path, json.dumps(entries, indent=1).encode() + b"\n", OTHER_FILE)


def check_target(path: Path, source: Path) -> None:
    """Raise CotenantError if no file can be made, or an existing one was not made by a search, or is the `source`."""
    if path.resolve() == source.resolve():
        sentence = f"{path} is the job file that is to be tuned: started again, the search would not know it."
        raise CotenantError(sentence, OTHER_FILE)
    if not path.exists():
        if not path.parent.exists():
            raise CotenantError(f"The directory of {path} does not exist.", OTHER_FILE)
        check_place(path.parent, OTHER_FILE)
        return
    entries = decode(path.read_text(errors="replace"), str(path))
    if not all(isinstance(entry.value, dict) and "tuned" in entry.value for entry in entries):
        raise CotenantError(f"{path} is there, and no search has written it.", OTHER_FILE)


def changes(tuned: Tuner) -> dict[str, list[Value | None]]:
    """Return the changes of the search: for each flag the job's own value (None if it has none) and the new one."""
    before = dict(tuned.base.args)
    after = {flag: values[0] for flag, values in tuned.job.args}
    return {flag: [before.get(flag), value] for flag, value in after.items() if before.get(flag) != value}


def _entry(path: Path, tuned: Tuner, checkout: Path) -> dict[str, Any]:
    job = tuned.job
    entry: dict[str, Any] = {
        "name": job.name,
        "cmd": _command(path, tuned, checkout),
        "cgroup": job.group,
        "args": {flag: value for flag, (value,) in job.args},
    }
    if job.weight != 1:
        entry["weight"] = job.weight
    if job.timeout_s is not None:
        entry["timeout"] = job.timeout_s
    if job.env:
        entry["env"] = dict(job.env)
    return entry | {"tuned": _history(tuned)}


def _command(path: Path, tuned: Tuner, checkout: Path) -> str:
    """Return the job's command as it is, if it means the same program in the new file's place; else its whole path."""
    try:
        same = resolve_command(tuned.base.job.cmd, tuned.base.job.name, path.absolute(), checkout) == tuned.command
    except CotenantError:
        same = False
    return tuned.base.job.cmd if same else str(tuned.command)


def _history(tuned: Tuner) -> dict[str, Any]:
    search, first = tuned.search, tuned.records[0]
    won = search.gain
    known, settings = estimates(search.trials), []
    for setting in dict.fromkeys(trial.setting for trial in search.trials):
        of_setting = [trial for trial in search.trials if trial.setting == setting]
        refused = next((trial for trial in of_setting if trial.rate is None), None)
        estimate = known.get(setting)
        settings.append(
            {
                "setting": {"--batch-size": setting.batch_size, **dict(setting.flags)},
                "rate": estimate and estimate.rate,
                "interval": estimate and estimate.interval,
                "n": len(of_setting),
                "outcome": "completed" if refused is None else refused.outcome,
                **({"message": refused.message} if refused is not None and refused.message else {}),
            }
        )
    return {
        "jobs": tuned.suite,
        "machine": first.machine.get("hostname"),
        "device": first.gpu,
        "tenants": tuned.tenancy,
        "software": first.machine.get("torch", {}).get("version"),
        "first_launch": first.start_time,
        "last_launch": tuned.records[-1].start_time,
        "seconds": round(sum(trial.seconds for trial in search.trials), 1),
        "ended": tuned.ended,
        "unit": f"{tuned.unit}/s",
        "changes": changes(tuned),
        "gain": None if won is None else {"ratio": won.rate, "interval": won.interval, "launches": won.n},
        "settings": settings,
    }
