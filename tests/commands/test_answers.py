"""What a wrong usage is answered, whole: read the golden files before you keep a change of them.

Each answer says what was wrong and what to do, right at first reading.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from commands.calling import Capture, call, write
from golden import check_golden
from report.making import launch

GOLDEN = Path(__file__).with_name("golden")
USAGES = """
vae
vea
lsit
help rnu
run vae
--jobs cpu vae
--jobs cpu --nmae vae
--jobs cpu --name vea
--jobs cpu --name vae --repeat 5
--jobs cpu --users 0
--jobs cpu --users two
--jobs bad.json
--jobs cpu --isolation cgroups
--jobs cpu --timeout 0
--jobs cpu --timeout
--jobs cpu --budget 10 --at-least 5
--jobs cpu --budget soon
--jobs cpu --until-interval 1
--jobs cpu --uid -1
--jobs cpu --reserve much
--jobs cpu --exclude toy_*,vea
--jobs cpu --outdir ''
--jobs cpu --format csv
list --name vea --jobs cpu
plan --jsno
plan vae
doctor --quik
report nowhere
report empty
report A --jbo vae
report A --job vea
report A --name vea
report A --name baselines
report A --name ,
report A --suite cpu
report A --table scalling
report A --targets V100
report A --targets H100 --html page.html
report A --jobs cpu
report A --title Mine
report A --format html
report A --table batch-size --per watt
report A --save-target V100
compare A
compare A nowhere
compare A B --margin 2
compare A B --fail-on faster
compare A B --allow speed
compare A B -- --name vae
history sow
history show
history add empty
export A
export A --out rows
export A --out B
mlbench-report --reports A --gpu-model H100
mlbench-report A
completion
completion tcsh
tune --jobs cpu
tune --jobs cpu --name vea --out x.json
tune --jobs cpu --only batchsize --out x.json
tune --jobs cpu --allow fp8 --out x.json
tune --jobs cpu --measured soon --out x.json
fleet rnu
fleet report
fleet report nowhere
fleet report empty
fleet report A --group old
fleet report A --resources nowhere.csv
fleet run --jobs cpu --tier 5m
challenge
challenge --listen nowhere
challenge --listen 99999
challenge --listen 7000 --replays 0
challenge --listen 7000 --key none.pem
--jobs cpu --name vae --challenge somewhere
--jobs cpu --users 4 --share mpps
--jobs cpu --users 4 --share mps:150
--jobs cpu --slices 2 --users 1
--jobs cpu --sense vea
--jobs cpu --sense vae --pressure nothing
--jobs cpu --sense vae --pressure dram:50
--jobs cpu --name vae --pressure dram:0,150
--jobs cpu --name vae --pressure dram:200
doctor --fix
--verison
--jobs cpu --mix vae
--jobs cpu --mix vae,vea
--jobs cpu --pairs vea
--jobs cpu --launcher srunn
--jobs scaling --launcher slurm
--jobs cpu --baseline long
report A --table share
report A --table pairs
report A --predict
report A --class tunned
verify nowhere
archive
"""
ARGUMENTS = """
--jobs cpu --name vae -- --repat 5
--jobs cpu --name vae -- --batch-size 0
--jobs cpu --name vae -- --precision fp64
--jobs cpu --name vae,reso -- --latent many
--jobs cpu --name vae -- --skip 9 --repeat 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place with an empty directory, a broken job file, and two directories of records."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BASE", str(tmp_path / "workspace"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.json").write_text('[{"name": "vae", "comand": "./run.sh"}]')
    for place in ("A", "B"):
        write(tmp_path / place, launch("vae"))
    return tmp_path


def answers(lines: Sequence[str], place: Path, capsys: Capture) -> str:
    """Return each command line and what it prints on standard error, with its status; none leaves anything."""
    parts = []
    for line in lines:
        status, printed, errors = call(capsys, *shlex.split(line))
        assert printed == "", line
        assert status == 2, line
        parts.append(f"$ ./run.sh {line}\n{errors}\n".replace(f"{place}/", "").replace(str(place), "HERE"))
    assert not (place / "workspace").exists()
    return "".join(parts)


def test_wrong_usages_are_answered_right_at_first_reading(here: Path, capsys: Capture) -> None:
    lines = USAGES.strip().splitlines()
    assert len(lines) > 20
    check_golden(GOLDEN / "wrong-usages.txt", answers(lines, here, capsys))


@pytest.mark.slow
def test_wrong_arguments_of_a_benchmark_are_answered_before_anything_starts(here: Path, capsys: Capture) -> None:
    check_golden(GOLDEN / "wrong-arguments.txt", answers(ARGUMENTS.strip().splitlines(), here, capsys))
