"""The parts that a benchmark imports: the contract, the loop, devices, precision, input."""

from cotenant.bench.arguments import flag, positional
from cotenant.bench.contract import Benchmark
from cotenant.bench.distributed import Distributed
from cotenant.bench.outcome import MissingDataError, UnsupportedError
from cotenant.bench.run import Run
from cotenant.bench.session import main

__all__ = ["Benchmark", "Distributed", "MissingDataError", "Run", "UnsupportedError", "flag", "main", "positional"]
