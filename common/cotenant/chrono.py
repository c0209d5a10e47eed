"""Holds the names that scripts of the reference suite import: `from cotenant.chrono import Experiment, parser_base`."""

from cotenant.bench.experiment import Experiment, parser_base
from cotenant.bench.stages import MultiStageChrono

__all__ = ["Experiment", "MultiStageChrono", "parser_base"]
