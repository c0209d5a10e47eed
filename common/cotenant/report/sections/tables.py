"""Sections on hosts, duets, results, devices, scaling, meters, findings and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from markupsafe import Markup

from cotenant.report.duets import LEGEND as OF_DUETS
from cotenant.report.duets import duets_view
from cotenant.report.hosts import hosts_view
from cotenant.report.hosts import jobs_on_hosts as jobs_on_hosts_view
from cotenant.report.jobs import explanations, jobs_view
from cotenant.report.matrix import device_matrix, device_names, matrix_view
from cotenant.report.meters import NAMES, courses
from cotenant.report.pictures.canvas import SOFT, WIDTH
from cotenant.report.pictures.curves import DASHED, CurveStyle, PlottedCurve, Scale, curves_picture, kept_curve
from cotenant.report.problems import findings_view, losses_view
from cotenant.report.renderers import html
from cotenant.report.scaling import ScalingPoint, scaling_view
from cotenant.report.section import Details, Picture, Section
from cotenant.report.sections.contents import PageContents, notes_of
from cotenant.results.drawn import MeterSpread
from cotenant.text import many

OF_DEVICES = (
    "The rate of each device as in Results, and (lowest .. highest launch), in % of the job's best device; the farther "
    "below it the stronger the colour. Jobs that own the whole machine are left out."
)
OF_SCALING = (
    "Speed-up is the median rate over launches, divided by that of one device; bars are 95 % intervals over launches."
)
OF_METERS = (
    "Launches in the order they ran. Box: from the lowest to the highest sample of any device while users were timed; "
    "line: the mean over devices."
)
OF_FINDINGS = (
    "An error makes a launch INVALID: its number counts nowhere. Of sentences that differ in their numbers the worst "
    "stands here; every record has its own."
)


def hosts(contents: PageContents) -> Section | None:
    view = hosts_view(contents.summary)
    if not view.shown:
        return None
    return Section("Hosts side by side", notes_of(view), table=html(view), anchor="hosts", short="Hosts")


def jobs_on_hosts(contents: PageContents) -> Section | None:
    view = jobs_on_hosts_view(contents.summary)
    return Section("Jobs on these hosts", notes_of(view), table=html(view)) if view.shown else None


def duets(contents: PageContents) -> Section | None:
    view = duets_view(contents.summary.in_duets)
    if not view.shown:
        return None
    return Section("Is B slower than A?", [OF_DUETS], table=html(view), anchor="duets", short="Duets")


def results(contents: PageContents) -> Section | None:
    view = jobs_view(contents.summary, contents.against.targets if contents.against else {})
    if not view.shown:
        return None
    # Each job's panel has these columns: with them the table would be wider than a screen.
    table = html(view, ["group", "fairness"])
    sentences = explanations(contents.summary.jobs, view.groups)
    return Section("Results", sentences, table=table, anchor="results", short="Results", filtered=True)


def devices(contents: PageContents) -> Section | None:
    """Return the rates of several devices over the best device's."""
    names, rows = device_matrix(contents.summary)
    if len(names) < 2:
        return None
    table = html(matrix_view(names, device_names(names, contents.summary), rows))
    return Section("Devices", [OF_DEVICES], table=table, anchor="devices", short="Devices")


def scaling(contents: PageContents) -> Section | None:
    """Return a picture and a table of each series with several points, one of them on a single device."""
    details = []
    for at, (series, points) in enumerate(contents.scaling.items()):
        if sum(point.speedup is not None for point in points) > 1:
            view = scaling_view({series: points})
            table = html(replace(view, groups=[replace(view.groups[0], title="")]))
            drawn = speedup_curves(points, f"s{at}")
            picture = Picture(drawn, "", heard=f"Speed-up of {series} over devices, as in the table")
            details.append(Details(str(series), pictures=[picture], table=table))
    return Section("Scaling", [OF_SCALING], details=details, anchor="scaling", short="Scaling") if details else None


def speedup_curves(points: Sequence[ScalingPoint], name: str) -> Markup:
    """Return speed-up over devices beside the ideal line."""
    speedups = [(point.total_devices, point.speedup) for point in points if point.speedup is not None]
    devices = [count for count, _ in speedups]
    words = [f"{speedup.value:.2f}x  {100 * speedup.value / count:.0f} %" for count, speedup in speedups]
    measured = kept_curve(devices, [speedup for _, speedup in speedups], CurveStyle(mark="o", width=1.6), words=words)
    ideal = PlottedCurve(devices, devices, style=CurveStyle(SOFT, DASHED, width=0.9), name="ideal")
    across = Scale("devices", (devices[0] / 1.15, devices[-1] * 1.45), doubling=devices)
    return curves_picture([ideal, measured], name, across, Scale("speed-up", doubling=devices), size=(WIDTH, 2.6))


def meters(contents: PageContents) -> Section | None:
    """Return a picture of each quantity of each host over its launches."""
    measured, shown = courses(contents.summary.records), []
    several = len({host for host, _, _ in measured}) > 1
    for index, (host, quantity, course) in enumerate(measured):
        name, unit, _ = NAMES[quantity]
        mean = fmean(fmean(meter.mean for meter in of_launch) for of_launch in course)
        caption, title = f"mean {mean:.4g} {unit} over {many(len(course), 'launch')}", f"{name}, {unit}"
        title += f" ({host})" if several else ""
        shown.append(Picture(over_launches(course, f"m{index}"), title, caption, f"{title} over launches: {caption}"))
    return Section("Meters", [OF_METERS], shown, anchor="meters", short="Meters") if shown else None


def over_launches(launches: Sequence[Sequence[MeterSpread]], name: str) -> Markup:
    """Return one quantity over launches in order: boxes from the lowest to the highest sample of any device, and lines
    at the mean over devices."""
    spans = [(min(meter.min for meter in meters), max(meter.max for meter in meters)) for meters in launches]
    means = [fmean(meter.mean for meter in meters) for meters in launches]
    curve = PlottedCurve(range(1, len(launches) + 1), means, spans, spread="boxes")
    across = Scale(ends=(0.4, len(launches) + 0.6), most=8, whole=True)
    up = Scale(ends=(0, 1.08 * max(high for _, high in spans) or 1), most=4)
    return curves_picture([curve], name, across, up, size=(WIDTH, 1.6))


def findings(contents: PageContents) -> Section | None:
    jobs = contents.summary.jobs
    anchors = {job.name: f"job{index}" for index, job in reversed([*enumerate(jobs)]) if job.rates}
    if not contents.findings:
        return None
    table = html(findings_view(contents.findings, anchors))
    return Section("Findings", [OF_FINDINGS], table=table, anchor="findings", short="Findings")


def failures(contents: PageContents) -> Section | None:
    if not contents.losses:
        return None
    sentences, table = [f"{contents.failed} did not complete."], html(losses_view(contents.losses))
    return Section("Failures", sentences, table=table, anchor="failures", short="Failures")


def left_out(contents: PageContents) -> Section | None:
    points = [*contents.summary.notes, *contents.skipped]
    return Section("Left out", points=points) if points else None
