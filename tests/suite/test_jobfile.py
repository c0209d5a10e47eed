"""Good job files, and the suites that they become."""

from __future__ import annotations

import dataclasses

import pytest

from cotenant.errors import CotenantError
from cotenant.suite import jobfile
from cotenant.suite.cells import Job
from cotenant.suite.jobfile import load, shipped_jobs

COMMAND = "./variational_auto_encoder/vae/pytorch/run.sh"
ORIGINAL = """[{"name": "vae", "cmd": "./variational_auto_encoder/vae/pytorch/run.sh",
  "args": {"--repeat": 50, "--number": 30, "--batch-size": 128,
           "--report": "$OUTPUT_DIRECTORY", "--cuda": ""},
  "cgroup": "student"}]
"""


def test_the_original_schema_is_read_with_a_byte_order_mark(written, monkeypatch):
    path = written(b"\xef\xbb\xbf" + ORIGINAL.encode())
    monkeypatch.chdir(path.parent)
    suite = load(path.relative_to(path.parent))
    assert (suite.name, suite.path) == ("jobs", path)
    (job,) = suite.jobs
    assert (job.name, job.cmd, job.group, job.stem) == ("vae", COMMAND, "student", "vae")
    assert job.args == (
        *(("--repeat", (50,)), ("--number", (30,)), ("--batch-size", (128,))),
        *(("--report", ("$OUTPUT_DIRECTORY",)), ("--cuda", ("",))),
    )


def test_only_name_and_cmd_of_a_job_are_required(loaded):
    (job,) = loaded({}).jobs
    assert job == Job("vae", "./vae.sh", (), "all", weight=1.0, timeout_s=None, env=(), stem="vae")
    with pytest.raises(dataclasses.FrozenInstanceError):
        job.name = "other"


def test_optional_keys_and_lists(loaded):
    (job,) = loaded({"cgroup": "all", "weight": 2, "timeout": 1.5, "env": {"A": "$BASE/lib", "_b2": 3, "C": 0.5}}).jobs
    assert (job.weight, job.timeout_s) == (2.0, 1.5)
    assert job.env == (("A", "$BASE/lib"), ("_b2", "3"), ("C", "0.5"))
    (job,) = loaded({"args": {"--lr": [0.1, 5e-4, "auto"], "$DATA_DIRECTORY/x": "", "-": ""}}).jobs
    assert job.args == (("--lr", (0.1, 0.0005, "auto")), ("$DATA_DIRECTORY/x", ("",)), ("-", ("",)))


def test_unusual_names_flags_and_numbers(loaded):
    for name in ("a b", "résumé", "vae-2", "-x", "x" * 100, "a,b", "vae[1]", "c1"):
        assert loaded({"name": name}).jobs[0].stem == name
    for flag in ("-x", "--xyz", "---", "-x=3", "--a b", "-5", "--"):
        assert loaded({"args": {flag: "value"}}).jobs[0].args == ((flag, ("value",)),)
    for number in (0, -1, 2**64 - 1, -(2**63), 1e308, 5e-324, -0.5):
        assert loaded({"args": {"--x": number}}).jobs[0].args == (("--x", (number,)),)


def test_stems_are_unique(loaded):
    for names, stems in [
        (["vae", "dcgan"], ["vae", "dcgan"]),
        (["vae", "vae", "vae"], ["vae", "vae-2", "vae-3"]),
        (["vae", "vae", "vae-2"], ["vae", "vae-3", "vae-2"]),
        (["vae-2", "vae", "vae"], ["vae-2", "vae", "vae-3"]),
        (["vae", "vae", "vae-2", "vae-2"], ["vae", "vae-3", "vae-2", "vae-2-2"]),
        (["a-2", "a", "a-2", "a"], ["a-2", "a", "a-2-2", "a-3"]),
    ]:
        jobs = loaded(*({"name": name} for name in names)).jobs
        assert [job.name for job in jobs] == names
        assert [job.stem for job in jobs] == stems


def test_the_largest_allowed_number_of_cells_is_accepted(loaded):
    hundred = list(range(100))
    assert loaded({"args": {"--a": hundred, "--b": hundred}}).jobs
    jobs = loaded({"args": {"--a": [1, 2]}}, {"name": "vae.c3"}, {"name": "b"}, {"name": "b.c1"}).jobs
    assert [job.stem for job in jobs] == ["vae", "vae.c3", "b", "b.c1"]


def test_a_list_of_precisions_makes_a_job_of_each(loaded):
    args = {"--batch-size": [1, 2], "--precision": ["fp32", "bf16"], "--x": 3}
    first, second, other = loaded({"name": "net", "args": args}, {"args": {"--precision": "fp16"}}).jobs
    assert [(job.name, job.stem, job.family) for job in (first, second)] == [
        ("net_fp32", "net_fp32", "net"),
        ("net_bf16", "net_bf16", "net"),
    ]
    assert second.args == (("--batch-size", (1, 2)), ("--precision", ("bf16",)), ("--x", (3,)))
    assert (other.name, other.family) == ("vae", "")
    jobs = loaded({"name": "net", "args": args}, {"name": "net_fp32"}, {"name": "net", "args": args}).jobs
    assert [job.stem for job in jobs] == ["net_fp32", "net_bf16", "net_fp32-2", "net_fp32-3", "net_bf16-2"]
    with pytest.raises(CotenantError, match="'net_a/b' holds a slash"):
        loaded({"name": "net", "args": {"--precision": ["a/b"]}})


def test_a_half_written_file_hides_no_jobs_of_other_files(tmp_path, monkeypatch):
    monkeypatch.setattr(jobfile, "CHECKOUT", tmp_path)
    (tmp_path / "profiles").mkdir()
    for name, text in {
        "a": ORIGINAL,
        "b": '[{"name": "dcgan",',
        "c": "{}",
        "d": '[1, {"cmd": "x"}, {"name": 3}, {"name": "mine"}]',
    }.items():
        (tmp_path / "profiles" / f"{name}.json").write_text(text)
    assert shipped_jobs() == ["vae", "mine"]
