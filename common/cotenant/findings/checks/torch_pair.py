"""Do torch and torchvision belong together? A pair that does not breaks everything that imports torchvision."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts, SelfTest

OPERATORS_MISSING = "torchvision::"
"""In the error of a torchvision whose compiled half was built for another torch: its operators are not registered."""
INDEX = "https://download.pytorch.org/whl"


def ask(facts: Facts) -> Answer | None:
    test = facts.self_test
    if test is None:
        return None
    if test.died:
        remedy = "Make the environment anew: remove .venv and start ./run.sh."
        said = Finding("torch_broken", "error", f"A process that imports torch {test.died}.", remedy)
        return Answer("torch cannot be asked", (said,))
    if test.torch_error:
        remedy = "pip install -r requirements.txt"
        said = Finding("torch_broken", "error", f"torch cannot be imported: {test.torch_error}.", remedy)
        return Answer("torch does not import", (said,))
    text = f"torch {test.torch} for {test.built_for}, torchvision {test.vision or 'missing'}"
    if not test.vision_error:
        return Answer(text)
    if OPERATORS_MISSING in test.vision_error or not belongs(test.torch, test.vision):
        sentence = (
            f"torchvision {test.vision} was not built for torch {test.torch} ({test.built_for}): "
            f"{test.vision_error}. Whatever imports it breaks, too."
        )
        return Answer(text, (Finding("torchvision_mismatch", "error", sentence, _matching(test)),))
    sentence = f"torchvision cannot be imported: {test.vision_error}."
    return Answer(text, (Finding("torchvision_broken", "error", sentence, _matching(test)),))


def belongs(torch: str, vision: str) -> bool:
    """Were these versions released as a pair? torch 2.N came with torchvision 0.(N + 15) since 2.0."""
    asked, there = fitting(torch), vision.split(".")
    return asked is None or len(there) < 2 or f"0.{there[1]}" == asked


def fitting(torch: str) -> str | None:
    """Return the torchvision release, `0.29`, that came with this torch, None for a version of another scheme."""
    major, _, rest = torch.partition(".")
    minor = rest.partition(".")[0]
    return f"0.{int(minor) + 15}" if major == "2" and minor.isdecimal() else None


def _matching(test: SelfTest) -> str:
    release = fitting(test.torch)
    wanted = f"'torchvision=={release}.*'" if release else "torchvision"
    return f"pip install --force-reinstall --no-deps {wanted} --index-url {INDEX}/{test.built_for}"


CHECK = Check("software", "torch", ask)
