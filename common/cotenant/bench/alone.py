"""Stand-alone use: no runner, no neighbours, and the benchmark writes its own record."""

from __future__ import annotations

import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotenant.bench.chrono import clock_ns
from cotenant.bench.world import World
from cotenant.machine.facts import machine_facts
from cotenant.machine.topology import discover
from cotenant.protocol.client import Rendezvous
from cotenant.protocol.messages import Message

Part = dict[str, Any]
"""A part of a record."""


ANSWERS = {"turn": "turn", "turned": "turned", "done": "stop"}


class Alone(Rendezvous):
    """A rendezvous that answers itself: GO once it is READY, STOP once it is DONE.

    Every rank has a rendezvous of its own, and rank 0's writes the record of all ranks where `--report` says.
    """

    def __init__(self, name: str, world: World) -> None:
        self._inbox, self._unsent = [], []
        self._name = name
        self._world = world
        self._started = datetime.now(UTC)
        self._work: Part = {}
        self._report: Path | None = None
        self._skip = self._ready_ns = self._t0_ns = 0
        self._warm_up_ns: list[int] = []
        self._observations: list[Part] = []
        self._of_ranks = [self._observations]

    def _say(self, kind: str, **fields: Any) -> None:
        if kind == "ready":
            self._skip, self._warm_up_ns = fields["skip"], fields["warm_up_ns"]
            self._ready_ns = self._t0_ns = clock_ns()
            self._inbox.append(Message("go", {**fields, "t0_ns": self._t0_ns}))
        elif kind in ANSWERS:
            self._inbox.append(Message(ANSWERS[kind], {}))

    def _receive(self, flags: int = 0) -> None:
        """Do nothing: everything is answered at once."""

    def begin(self, work: Part) -> None:
        """Take note of the work. Raises CotenantError if its `--report` cannot be written."""
        from cotenant.results.store import prepare_directory

        self._work = work
        named = work["arguments"]["report"]
        if named and self._world.rank == 0:
            self._report = Path(named)
            prepare_directory(self._report.parent if self._report.suffix == ".json" else self._report)

    def observation(self, **fields: Any) -> None:
        del fields["index"]
        self._observations.append(fields)

    def record(self, record: Part) -> Part:
        """Return the record of a finished run, written where `--report` says; all ranks have to call this.

        Raises BenchmarkError if a rank no longer answers: without its items there is no rate.
        """
        self._of_ranks = self._world.gather(self._observations)
        bad, checked = record["losses_non_finite"], record["losses_checked"]
        if bad:
            return self._write("nan", f"{bad} of {checked} losses were not finite.", record)
        return self._write("completed", "", record)

    def failed(self, outcome: str, message: str) -> None:
        """Write the record of an unfinished run where `--report` says, if it names a place."""
        if self._report is not None:
            self._write(outcome, message, {})

    def _write(self, outcome: str, message: str, part: Part) -> Part:
        # Imported here: a measured process should not load these modules before its end.
        from cotenant.confidential import by_new_key
        from cotenant.findings.rules import with_findings
        from cotenant.results.build import build_record, load_of, observed_by_ranks
        from cotenant.results.record import Attested, Enclosed, Meeting, Observed, known_outcome, plain_record, rated
        from cotenant.results.store import keep_record
        from cotenant.results.told import tenant_part

        of_ranks = [[Observed(**fields) for fields in rows] for rows in self._of_ranks]
        observations, by_rank = observed_by_ranks(dict(enumerate(of_ranks)))
        told = tenant_part(self._work | part)
        trained = max(self._world.size, part.get("observed", {}).get("replicas", 1))
        devices = trained if part.get("gpu") else 0
        ended, message = known_outcome(outcome, message)
        now = datetime.now(UTC)
        meeting = None
        if rated(observations, self._skip):
            start_ns, end_ns = load_of(observations, told, stop_ns=0)
            meeting = Meeting(self._ready_ns, self._t0_ns, start_ns, end_ns, 1.0, 0, self._warm_up_ns)
        facts = Attested(
            suite="alone",
            name=os.environ.get("BENCH_NAME", self._name),
            run_id=0,
            vcd=",".join(map(str, range(devices))) or "0",
            hostname=socket.gethostname(),
            cpu_cores=len(os.sched_getaffinity(0)),
            devices=devices,
            suite_start_time="",
            start_time=self._started.isoformat(),
            end_time=now.isoformat(),
            outcome=ended,
            message=message,
            tenant=0,
            tenants=1,
            group="all" if trained > 1 else "student",
            skip=self._skip,
            asked=None,
            given=None,
            comparable=True,
            command=sys.argv,
            log="",
            observations=observations,
            rank_observations=by_rank,
            rendezvous=meeting,
            isolation=Enclosed("none", {}, {}, {}, ["processors", "memory"]),
            machine=machine_facts(discover(), Path(__file__).parent),
            meters={},
            findings=[],
        )
        (record,) = with_findings([build_record(facts, told, by_new_key())])
        if self._report is not None:
            print(f"Record: {keep_record(self._report, record, now)}", file=sys.stderr)
        return plain_record(record)
