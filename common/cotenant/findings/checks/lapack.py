"""Linear algebra in torch: a build without LAPACK fails at the first QR decomposition, often hours into a suite."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts


def ask(facts: Facts) -> Answer | None:
    test = facts.self_test
    if test is None or test.died or test.torch_error:
        return None
    if not test.lapack_error:
        return Answer("a QR decomposition is right")
    finding = Finding(
        "lapack",
        "error",
        f"torch cannot decompose a matrix (QR): {test.lapack_error}.",
        "Install an official torch wheel (pip install -r requirements.txt), or build torch with LAPACK or MKL.",
    )
    return Answer("missing or wrong", (finding,))


CHECK = Check("software", "LAPACK", ask)
