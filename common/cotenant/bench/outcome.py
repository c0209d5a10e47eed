"""How a tenant that cannot finish says why: an outcome of its own and a sentence with the remedy."""

from __future__ import annotations

import torch

from cotenant.errors import EXIT_FAILED, EXIT_USAGE, CotenantError


class BenchmarkError(CotenantError):
    """Ends this tenant with `outcome`."""

    exit_status = EXIT_FAILED
    outcome = "failed"


class UnsupportedError(BenchmarkError):
    """This device cannot do what was asked."""

    outcome = "unsupported"


class MissingDataError(BenchmarkError):
    """The input is not where the flags say it is."""

    outcome = "missing_data"


def outcome_of(error: BaseException) -> tuple[str, str, int]:
    """Return (outcome, message, exit status) for what ended a benchmark."""
    if isinstance(error, BenchmarkError):
        return error.outcome, str(error), error.exit_status
    if isinstance(error, CotenantError):
        return "failed", str(error), EXIT_USAGE
    if isinstance(error, ModuleNotFoundError):
        return (
            "missing_package",
            f"The package '{error.name}' is missing. pip install {error.name}",
            EXIT_FAILED,
        )
    if isinstance(error, torch.OutOfMemoryError):
        first = str(error).partition("\n")[0]
        return "device_out_of_memory", f"{first} Use a smaller --batch-size.", EXIT_FAILED
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", "Interrupted.", 130
    return "failed", f"{type(error).__name__}: {error}", EXIT_FAILED
