"""A command line resolved on an invented machine: its options, and the launches to come."""

from __future__ import annotations

from dataclasses import replace

from cotenant.commands.given import SuiteFlags
from cotenant.commands.suite_flags import suite_parser
from cotenant.commands.suite_options import options_of
from cotenant.isolation.choose import Chosen
from cotenant.isolation.unenforced import NoIsolation
from cotenant.launch.resume import conditions_of
from cotenant.launch.start import Options, Resolver
from cotenant.machine.topology import Machine
from machine.invented import GIB, device, machine

HOST = machine(cores=6)


def with_devices(count: int, cores: int = 6, memory_bytes: int = 16 * GIB, name: str = "V100") -> Machine:
    devices = (replace(device(index, name=name), memory_bytes=memory_bytes) for index in range(count))
    return machine(cores=cores, devices=tuple(devices))


def options(*words: object, extra: tuple[str, ...] = (), there: Machine = HOST) -> Options:
    given = SuiteFlags.of(suite_parser("", "", "").parse_words(list(map(str, words))))
    return options_of(given, extra, there)


def resolved(of: Options, there: Machine = HOST) -> Resolver:
    return Resolver(of, there, Chosen(NoIsolation()))


def resolver(*words: object, extra: tuple[str, ...] = (), there: Machine = HOST) -> Resolver:
    return resolved(options(*words, extra=extra, there=there), there)


def conditions(of: Options, there: Machine = HOST) -> dict[str, str]:
    """Return the conditions of going on with such a suite."""
    return conditions_of(of, resolved(of, there).starts(), "affinity")
