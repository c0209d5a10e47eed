"""The page's part on neighbours of known pressure: curves as small multiples, fingerprints, predictions."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from cotenant.report import fingerprints, prediction, sense
from cotenant.report.page_jobs import Picture
from cotenant.report.pictures.sense import sensitivity, shares_of
from cotenant.report.renderers import html
from cotenant.report.sense import Sensitivity, sensitivities, words_of
from cotenant.report.summary import Summary
from cotenant.results.launches import grouped

CAPTION = (
    "Filled: in slices; hollow and dashed: without; band: 95 % intervals, of the rounds of a launch, or of launches "
    "where there are three."
)


MEANT = {
    "cpu": "cpu: processor time",
    "llc": "llc: last-level cache",
    "dram": "dram: memory bandwidth",
    "disk": "disk: reads of a disk",
    "memory": "memory: resident memory",
    "pcie": "pcie: copies to a device and back",
    "sm": "sm: a device's multiprocessors",
    "hbm": "hbm: bandwidth of a device's memory",
    "l2": "l2: a device's last-level cache",
    "launch": "launch: starts of kernels",
}


@dataclass(frozen=True, slots=True)
class JobCurves:
    """The curves of one job, a picture a resource, and each in a sentence."""

    job: str
    pictures: list[Picture]
    sentences: list[str]


@dataclass(frozen=True, slots=True)
class UnderPressure:
    """The page's part on pressure; tables are empty where there is nothing in them."""

    jobs: list[JobCurves]
    caption: str
    explanation: str
    fingerprints: Markup
    of_fingerprints: str
    predictions: Markup
    of_predictions: str


def under_pressure(summary: Summary) -> UnderPressure | None:
    """Return the page's part on launches beside neighbours of known pressure; None without a curve."""
    curves = sensitivities(summary)
    if not any(each.curve for each in curves):
        return None
    prints = fingerprints.fingerprints_grid(curves)
    predicted = prediction.predictions(summary, curves)
    return UnderPressure(
        _jobs(curves),
        CAPTION,
        sense.LEGEND,
        html(prints) if prints.groups else Markup(),
        fingerprints.LEGEND,
        html(prediction.prediction_grid(predicted)) if predicted else Markup(),
        prediction.LEGEND,
    )


def _jobs(curves: list[Sensitivity]) -> list[JobCurves]:
    """Return the jobs' curves on one axis of shares."""
    shown = [each for each in curves if each.curve is not None]
    ends = shares_of(shown)
    jobs: list[JobCurves] = []
    for (_, host, job), of_job in grouped(
        shown, lambda each: (each.conditions.suite, each.conditions.host, each.conditions.job)
    ).items():
        pictures = []
        by_resource = grouped(of_job, lambda each: each.conditions.resource)
        for at, (resource, of) in enumerate(by_resource.items()):
            drawn = sensitivity(of, ends, f"sense{len(jobs)}-{at}")
            pictures.append(Picture(Markup(drawn), MEANT.get(resource, resource), "; ".join(map(words_of, of))))
        several = len({each.conditions.host for each in shown}) > 1
        jobs.append(JobCurves(f"{job} on {host}" if several else job, pictures, [words_of(each) for each in of_job]))
    return jobs
