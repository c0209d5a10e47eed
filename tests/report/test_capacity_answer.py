"""The answer of `capacity` in sentences, as a table and as lines to paste."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.machine import line_checks
from cotenant.report.capacity import COLUMNS, capacity_sentences, capacity_view
from cotenant.report.paste import paste_lines
from cotenant.report.renderers import document
from cotenant.report.view_pages import capacity_page
from cotenant.stats.capacity import (
    NOBODY,
    NOISE,
    AloneUse,
    BesidePressure,
    Carried,
    Requirement,
    Standing,
    estimates_of,
)
from machine.invented import device, machine
from report.making import text_of

GIB = 1 << 30
ALONE = AloneUse(100.0, "image", 1.9, 2, 3 * GIB // 2, 12, None)


def launches(shares: dict[int, float], spread: float = 0.01) -> dict[int, list[dict[int, float]]]:
    return {
        users: [{user: math.log(share) + off for user in range(users)} for off in (-spread, 0.0, spread)]
        for users, share in shares.items()
    }


def found(users: int, shares: dict[int, float], spread: float = 0.01) -> Carried:
    return Carried(
        "vae",
        Requirement("keep", 0.5),
        users=users,
        settled=True,
        alone=ALONE,
        memory_users=12,
        memory_bytes=2 * GIB,
        confirmed=estimates_of(launches(shares, spread)),
        binding="processors",
        busy=2.0,
    )


HELD = found(4, {4: 0.55, 5: 0.45})


def test_a_program_that_counts_its_own_steps_is_unaudited() -> None:
    said = replace(HELD, alone=replace(ALONE, audited=False))
    assert "alone 100.0 image/s; unaudited; " in text_of(capacity_view([said]))
    assert "unaudited" not in text_of(capacity_view([HELD]))


def test_the_answer_says_how_many_users_fit_and_what_binds() -> None:
    by_memory = replace(found(12, {12: 0.6}), by_memory=True, binding="memory")
    assert " ".join(capacity_sentences(by_memory)) == (
        "Twelve users run vae at once and each keeps at least half of what it has alone (lower limits); the 13th "
        "fails on memory. Memory binds: it holds no more users."
    )
    assert " ".join(capacity_sentences(HELD)) == (
        "Four users run vae at once and each keeps at least half of what it has alone (lower limits); with the fifth "
        "the worst keeps 45 % (44.3 to 45.7 %). Processors bind: no more of them are idle."
    )
    allowed = replace(found(3, {3: 0.9}), binding="")
    assert " ".join(capacity_sentences(allowed)).endswith("; more than 3 were not to be tried (--users).")
    rate = replace(found(1, {1: 0.9, 2: 0.3}), requirement=Requirement("rate", 0.5), binding="")
    assert " ".join(capacity_sentences(rate)) == (
        "One user runs vae and has at least 0.5000 items/s (lower limits); with the second the worst has "
        "0.3 items/s (0.2952 to 0.3048 items/s). They kept 2.0 of 2 processors busy: the limit may be bandwidth, "
        "caches, a disk (--pressure tells), or other work on this machine."
    )
    for users, begin in ((4, "Four users run ViT_L16 at once"), (1, "One user runs ViT_L16 and")):
        (said, *_) = capacity_sentences(replace(HELD, label="ViT_L16", users=users))
        assert said.startswith(begin), "a job keeps the letters of its name"


def test_it_says_beside_whom_that_holds() -> None:
    estimate = estimates_of(launches({4: 0.3}))[4]
    beside = BesidePressure("dram", estimate, Standing.FAILED)
    held = BesidePressure("cpu", estimate, Standing.HELD)
    text = " ".join(capacity_sentences(replace(HELD, pressures=(held, beside))))
    assert "among users like these: beside one that takes all it can of dram the worst keeps 30 %" in text
    assert "It held beside a user that takes all it can of cpu." in text


def test_a_missing_answer_says_why_and_what_would_settle_it() -> None:
    unclear = replace(found(4, {4: 0.52, 5: 0.49}, 0.05), settled=False, why=NOISE, missing_s=540.0)
    (text,) = capacity_sentences(unclear)
    assert text.startswith("No answer yet: whether four users fit, of whom each keeps at least half")
    assert "About 540 s more would settle it (--budget)" in text
    assert "the worst of them keeps 52 % (48 to 56.3 %)" in text
    assert "carried beyond doubt" not in text
    sure = replace(unclear, searched=(estimates_of(launches({2: 0.9}))[2],))
    assert "Two are carried beyond doubt. About 540 s" in capacity_sentences(sure)[0]
    (none,) = capacity_sentences(replace(found(0, {}), settled=False, why=NOBODY))
    assert none == "No answer: not even one user keeps at least half of what it has alone."
    (flaw,) = capacity_sentences(replace(found(0, {}), settled=False, why="vae is INVALID: It slept."))
    assert flaw == "No answer: vae is INVALID: It slept."


def test_the_table_has_a_row_for_each_number_of_users() -> None:
    answer = replace(HELD, searched=tuple(estimates_of(launches({2: 0.9, 4: 0.5})).values()))
    view = capacity_view([answer])
    (group,) = view.groups
    facts = "alone 100.0 image/s; 1.50 GiB at the peak; 12 tasks; memory holds 12"
    assert (group.title, group.facts) == ("vae", facts)
    texts = [[column.cell(row).text for column in COLUMNS] for row in group.each()]
    seen = [(users, n, standing) for users, *_, n, standing in texts]
    assert seen == [("2", "3 rounds", "held"), ("4", "3 launches", "held"), ("5", "3 launches", "failed")]
    (row,) = document(view)["rows"]
    assert (row["users"], row["alone_peak_bytes"]) == (4, 3 * GIB // 2)
    assert row["answer"] == " ".join(capacity_sentences(answer))
    estimates = document(view)["parts"]["estimates"]["rows"]
    assert [(each["users"], each["over"], len(each["logs"])) for each in estimates] == [
        (2, "rounds", 2),
        (4, "rounds", 4),
        (4, "launches", 4),
        (5, "launches", 5),
    ]


def test_paste_lines_hold_the_number_of_users_and_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_checks.shutil, "which", lambda name: None)
    lines = {each.tool: each for each in paste_lines(HELD, machine())}
    assert {each.checked for each in lines.values()} == {"unchecked"}
    assert "MemoryMax=2048M\n" in lines["systemd"].text
    assert "c.JupyterHub.active_server_limit = 4\n" in lines["JupyterHub"].text
    assert 'mem_limit = "2048M"' in lines["JupyterHub"].text
    assert "OverSubscribe=FORCE:4 DefMemPerNode=2048 MaxMemPerNode=2048" in lines["Slurm"].text
    assert "RealMemory=8192" in lines["Slurm"].text
    assert "Gres" not in lines["Slurm"].text
    slurm = {each.tool: each.text for each in paste_lines(HELD, machine(devices=(device(0, 0),)))}["Slurm"]
    assert "\nGresTypes=gpu,shard\n" in slurm
    assert " Gres=gpu:1,shard:4\n" in slurm


def test_a_tool_that_is_there_reads_the_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Stand-ins print the words of the tools; systemd-analyze ends with 0 even if a key is wrong."""
    for name, text in {
        "systemd-analyze": 'grep -q Wrong "$2" && echo "$2:2: Unknown key name"; exit 0',
        "slurmd": "echo NodeName=here CPUs=8 Boards=1 RealMemory=16000; echo UpTime=1",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert line_checks.checked_by_systemd("[Slice]\nCPUWeight=100\n") == "checked by systemd-analyze verify"
    assert "Unknown key name" in line_checks.checked_by_systemd("[Slice]\nWrong=100\n")
    assert line_checks.checked_by_slurm(8, 16000) == "checked by slurmd -C"
    assert line_checks.checked_by_slurm(8, 16001) == "refused: slurmd -C has 8 CPUs, 16000 MB"


def test_the_page_has_the_answer_a_chart_and_the_paste_lines() -> None:
    answer = replace(HELD, searched=tuple(estimates_of(launches({1: 1.0, 2: 0.9, 4: 0.56, 5: 0.44})).values()))
    page = capacity_page([answer], [str(lines) for lines in paste_lines(answer, machine(cores=2))])
    assert capacity_sentences(answer)[0] in page
    (chart,) = re.findall(r"<svg.*?</svg>", page, re.S)
    assert "users at once" in chart
    # Four rounds and two launches have an interval each.
    bars = re.findall(r'd="([^"]*)"[^>]*stroke: currentColor; stroke-width: 1.1', chart)
    assert [path.count("M") for path in bars] == [4, 2]
    assert "&lt;" not in page
    assert "MemoryMax=2048M" in page
    hopeless = Carried("vae", Requirement("keep", 0.5), why=NOBODY)
    assert "<svg" not in capacity_page([hopeless], [])
