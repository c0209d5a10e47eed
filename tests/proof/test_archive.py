"""An archive has the files of a suite's directory, and no other archive passes for it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from commands.calling import Capture, call
from cotenant.errors import CotenantError
from cotenant.findings.rules import with_findings
from cotenant.proof.archive import MANIFEST, make_archive, packed, unpacked
from cotenant.proof.verify import checks_of
from cotenant.results.journal import FILE, Journal, Launched, Started, append, read_journal
from cotenant.results.record import Record
from cotenant.results.store import write_record
from cotenant.stats.tenants import common_load, overlap
from report.making import launch
from results.made import ISOLATION, hashes

LATER = "2026-05-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two launches as a suite leaves them, and an archive of them."""
    directory = tmp_path_factory.mktemp("suite")
    begun(directory, "vae", "cart", "ssd")
    for name in ("vae", "cart"):
        launched(directory, name, with_findings(met(launch(name))))
    (directory / "summary.txt").write_text("Total Time 1.00 s\n")
    (directory / "logs").mkdir()
    (directory / "logs" / "vae.R0.T0.log").write_text("a line\n")
    (directory / "other.txt").write_text("nobody's business")
    (directory / "link.json").symlink_to("/etc/passwd")
    make_archive(directory, directory / "run.tar.zst", "0.1.0")
    return directory


def begun(directory: Path, *launches: str) -> None:
    """Announce launches in a suite's journal."""
    append(directory, Started(suite="baselines", uid=0, host="h", time="t", launches=launches, conditions={}))


def launched(directory: Path, label: str, records: list[Record], uid: int = 0) -> None:
    """Write the records of a launch as a suite does, and name them in its journal."""
    directory.mkdir(exist_ok=True)
    files = hashes([write_record(directory, one, datetime.fromisoformat(one.start_time)) for one in records])
    outcomes = ("completed",) * len(records)
    append(directory, Launched(suite="baselines", uid=uid, label=label, time="t", outcomes=outcomes, records=files))


def met(records: list[Record]) -> list[Record]:
    """Return the records of a launch with the overlap of their observations."""
    meetings = [record.rendezvous for record in records if record.rendezvous]
    load = common_load([(meeting.start_ns, meeting.load_end_ns) for meeting in meetings])
    spans = [[(seen.start_ns, seen.end_ns) for seen in record.observations[record.skip :]] for record in records]
    return [
        replace(record, rendezvous=replace(meeting, overlap=overlap(span, load)))
        for record, meeting, span in zip(records, meetings, spans, strict=True)
    ]


def wrong(archive: Path) -> dict[str, tuple[str, ...]]:
    return {check.name: check.wrong for check in checks_of(*unpacked(archive)) if check.wrong}


def test_it_holds_what_the_suite_left(suite: Path) -> None:
    _, members = unpacked(suite / "run.tar.zst")
    assert members.keys() == {
        FILE,
        "summary.txt",
        "logs/vae.R0.T0.log",
        *(path.name for path in suite.glob("baselines.*.json")),
    }
    assert wrong(suite / "run.tar.zst") == {}
    notes = {check.name: check.note for check in checks_of(*unpacked(suite / "run.tar.zst"))}
    assert notes == {"hashes": "", "journal": "Announced, and never finished: ssd (repetition 0).", "numbers": ""}


@given(st.data())
def test_a_changed_byte_is_refused_unless_all_content_is_whole(suite: Path, data: st.DataObject) -> None:
    content = bytearray((suite / "run.tar.zst").read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    changed = suite / "changed.tar.zst"
    changed.write_bytes(content)
    assert refusal(changed) or unpacked(changed) == unpacked(suite / "run.tar.zst")


def test_an_archive_that_was_cut_off_is_refused(suite: Path, tmp_path: Path) -> None:
    content, cut = (suite / "run.tar.zst").read_bytes(), tmp_path / "cut.tar.zst"
    for length in range(0, len(content) - 8, 97):
        cut.write_bytes(content[:length])
        assert re.search("is missing.|is no archive, or a damaged one: ", refusal(cut)), length


def refusal(archive: Path) -> str:
    """Return what `verify` says is wrong with an archive, "" if nothing is."""
    try:
        return " ".join(wrong(archive).get("hashes", ()))
    except CotenantError as error:
        return str(error)


def test_members_are_held_against_the_manifest(suite: Path, tmp_path: Path, capsys: Capture) -> None:
    manifest, members = unpacked(suite / "run.tar.zst")
    gone = {name: content for name, content in members.items() if name != "summary.txt"}
    for changed, sentence in (
        (gone, "summary.txt is missing."),
        (members | {"summary.txt": b""}, "summary.txt is not what was archived."),
        (members | {"../x\x1b[31m.log": b""}, "../x\x1b[31m.log was put in."),
    ):
        assert checks_of(manifest, changed)[0].wrong == (sentence,)
    status, printed, _ = call(capsys, "verify", forge(suite, tmp_path, {"\x1b[31m.json": b""}))
    assert (status, "\x1b" in printed, "REFUSED: journal, numbers." in printed) == (1, False, True), printed


def test_a_file_that_is_no_archive_is_refused_with_a_sentence(suite: Path, tmp_path: Path) -> None:
    _, members = unpacked(suite / "run.tar.zst")
    link = tarfile.TarInfo("summary.txt")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    contents = {
        "empty": b"",
        "of no tar": zstandard.compress(b"x" * 1024),
        "without a manifest": packed(members),
        "with a list as manifest": packed({MANIFEST: b"[]"}),
        "with a manifest that is not UTF-8": packed({MANIFEST: b'{"cotenant": "\xff"}'}),
        "with a link": zstandard.compress(link.tobuf()),
    }
    for name, content in contents.items():
        path = tmp_path / "wrong.tar.zst"
        path.write_bytes(content)
        with pytest.raises(CotenantError, match="is no archive, or a damaged one: "):
            pytest.fail(f"{name}: {unpacked(path)}")


def test_an_archive_of_frames_with_a_hash_behind_them_is_read(suite: Path, tmp_path: Path) -> None:
    """Version 0.1 wrote each member as a frame, and the hash of them all as a frame that is skipped."""
    manifest, members = unpacked(suite / "run.tar.zst")
    with zstandard.open(suite / "run.tar.zst", "rb") as plain:
        content = plain.read()
    frames = [zstandard.compress(content[at : at + 512]) for at in range(0, len(content), 512)]
    skipped = (0x184D2A50).to_bytes(4, "little") + (64).to_bytes(4, "little") + b"0" * 64
    old = tmp_path / "old.tar.zst"
    old.write_bytes(b"".join(frames) + skipped)
    assert unpacked(old) == (manifest, members)


def test_an_edited_record_with_renewed_hashes_is_caught(suite: Path, tmp_path: Path) -> None:
    vae = next(path.name for path in suite.glob("baselines.vae.*.json"))
    record = json.loads((suite / vae).read_bytes())
    rows = record["observations"]
    slower = [row | {"end_ns": row["end_ns"] + 10} for row in rows[:20]] + rows[20:]
    scaled = {"devices": 2, "rate_of_one": 1.0, "efficiency": 0.99}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"statistics": {"median": 2 * record["statistics"]["median"]}}, "its median is"),
        ({"rendezvous": {"overlap": 0.5}}, "its overlap is 0.5, and"),
        ({"observations": slower}, "by its observations."),
        ({"meters": {"compute": {"mfu": 0.9}}}, "its compute mfu is 0.9, and None by its observations"),
        ({"meters": {"scaling": scaled}}, "its scaling efficiency is 0.99, and None by"),
        ({"meters": {"compute": 5}}, "it holds numbers that no run writes"),
        (
            {"observations": [row | {"kept": False} for row in rows]},
            "its statistics do not follow from its observations",
        ),
    ]
    for change, sentence in changes:
        found = wrong(forge(suite, tmp_path, {vae: edited(suite / vae, **change)}))
        assert sentence in " ".join(found["numbers"]), sentence
        assert "is not what launch vae, repetition 0, wrote" in " ".join(found["journal"])
    broken = forge(suite, tmp_path, {vae: b'{"name": "\xff"}'})
    assert f"{vae} is no record of this version" in wrong(broken)["numbers"][0]
    others = [path.name for path in sorted(suite.glob("baselines.*.json"))]
    swapped = {name: (suite / other).read_bytes() for name, other in zip(others, reversed(others), strict=True)}
    assert len(wrong(forge(suite, tmp_path, swapped))["journal"]) == len(others)
    own, missing = (suite / vae).read_bytes(), f"{vae} of launch vae, repetition 0, is missing."
    strays: list[tuple[dict[str, bytes | None], str]] = [
        ({vae: None}, missing),
        ({vae: None, f"{vae}.unfinished": own}, missing),
        ({vae: None, f"{vae}.superseded": own}, missing),
        ({"baselines.wlm.R0.D0.json": own}, "baselines.wlm.R0.D0.json stands in no launch of the journal."),
    ]
    for changed, sentence in strays:
        assert wrong(forge(suite, tmp_path, changed))["journal"] == (sentence,)
    start, first, second = (suite / FILE).read_bytes().splitlines(keepends=True)
    misplaced = "line 2: it does not follow the line before it"
    for journal, sentence in (
        (start + second + first, misplaced),
        (start + second, misplaced),
        (start + first, "The journal does not have the end that the archive names."),
    ):
        assert sentence in wrong(forge(suite, tmp_path, {FILE: journal}))["journal"][0]


def test_records_replaced_by_another_launch_may_be_superseded(tmp_path: Path) -> None:
    place, archive = tmp_path / "suite", tmp_path / "run.tar.zst"
    launched(place, "vae", with_findings(met(launch("vae"))))
    older = sorted(place.glob("*.json"))
    launched(place, "vae", with_findings(met([replace(one, start_time=LATER) for one in launch("vae")])))
    for path in older:
        path.rename(f"{path}.superseded")
    make_archive(place, archive, "0.1.0")
    assert wrong(archive) == {}
    path = Path(f"{older[0]}.superseded")
    path.write_bytes(path.read_bytes().replace(b"vae", b"wlm"))
    make_archive(place, archive, "0.1.0")
    assert wrong(archive)["journal"] == (f"{older[0].name} is not what launch vae, repetition 0, wrote.",)


def test_an_archive_of_nothing_is_refused(suite: Path, tmp_path: Path, capsys: Capture) -> None:
    """Its sender has recomputed every hash: nothing in it is wrong, as there is nothing in it."""
    started = (suite / FILE).read_bytes().splitlines(keepends=True)[0]
    nothing: dict[str, bytes | None] = {path.name: None for path in suite.glob("baselines.*.json")}
    for journal, head in {started: sha256(started.rstrip()).hexdigest(), b"": Journal().head}.items():
        archive = forge(suite, tmp_path, nothing | {FILE: journal}, head)
        found = wrong(archive)
        assert found["numbers"] == ("It holds no record: there is nothing to verify.",)
        assert found.get("journal") == (
            None if journal == started else ("There is no journal: nothing says which launches there were.",)
        )
        status, printed, _ = call(capsys, "verify", archive)
        assert (status, "All of it holds" in printed) == (1, False), journal


def edited(path: Path, **changes: Any) -> bytes:
    """Return the content of a record with other fields; of a field that is a mapping only the given ones change."""
    record = json.loads(path.read_bytes())
    for name, value in changes.items():
        record[name] = record[name] | value if isinstance(value, dict) else value
    return json.dumps(record).encode()


def forge(suite: Path, folder: Path, changes: dict[str, bytes | None], head: str | None = None) -> Path:
    """Write an archive with changed members and recomputed hashes; `head`: the hash of the journal's last line."""
    made, archived = unpacked(suite / "run.tar.zst")
    members = {name: content for name, content in {**archived, **changes}.items() if content is not None}
    digests = {name: sha256(content).hexdigest() for name, content in members.items()}
    manifest = replace(made, members=digests, journal_head=made.journal_head if head is None else head)
    path = folder / "forged.tar.zst"
    path.write_bytes(packed({MANIFEST: msgspec.json.encode(manifest), **members}))
    return path


def test_commands(suite: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out.tar.zst"
    status, printed, _ = call(capsys, "archive", suite, "-o", out)
    assert status == 0
    assert printed.startswith(f"{out}: 7 files, journal ")
    status, printed, _ = call(capsys, "verify", out)
    assert (status, printed.splitlines()[-1]) == (0, "All checks passed.")
    assert [line.split()[:2] for line in printed.splitlines()[:2]] == [["hashes", "yes"], ["journal", "yes"]]
    status, printed, _ = call(capsys, "verify", forge(suite, tmp_path, {FILE: b""}))
    assert (status, printed.splitlines()[-1]) == (1, "REFUSED: journal.")
    empty = tmp_path / "empty"
    empty.mkdir()
    for words, sentence in {
        ("archive", empty, "-o", out): f"{empty} has no journal: no suite of this version has run there.",
        ("verify", suite / "summary.txt"): "is no archive, or a damaged one",
        ("verify", empty): "cannot be read",
    }.items():
        status, _, errors = call(capsys, *words)
        assert (status, sentence in errors) == (2, True), errors
    subprocess.run(["tar", "--zstd", "-xf", out, "-C", empty], check=True)
    assert {path.name: path.read_bytes() for path in empty.glob("*.json")}.keys() - {MANIFEST} == {
        path.name for path in suite.glob("baselines.*.json")
    }


def test_files_that_no_launch_wrote_are_named_and_not_archived(
    suite: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own table, and the records that a running suite writes while it is archived."""
    directory = shutil.copytree(suite, tmp_path / "running", symlinks=True)
    (directory / "table.json").write_text("{}")
    out = tmp_path / "out.tar.zst"

    def read_and_run_on(place: Path) -> Journal:
        journal = read_journal(place)
        launched(place, "ssd", with_findings(met(launch("ssd"))))
        return journal

    monkeypatch.setattr("cotenant.proof.archive.read_journal", read_and_run_on)
    status, _, errors = call(capsys, "archive", directory, "-o", out)
    assert status == 0
    assert errors.startswith("cotenant: Not archived, as no launch in the journal wrote them: baselines.ssd.R0.D")
    assert ", table.json. If a suite still runs, archive again after its end.\n" in errors
    status, printed, _ = call(capsys, "verify", out)
    assert (status, printed.splitlines()[-1]) == (0, "All checks passed."), printed


@pytest.mark.parametrize(
    ("early", "is_wrong"),
    [({"sharers": 2}, False), ({"isolation": replace(ISOLATION, policies={"settle_s": 3.0})}, False), ({}, True)],
)
def test_sharing_or_settling_tenants_are_under_load_from_t0(
    early: dict[str, Any], is_wrong: bool, tmp_path: Path
) -> None:
    """The second tenant begins to observe 5 s after the first one, whose kept observations begin before that."""
    first, second = launch("vae", uid=5, place=early)
    rows = [
        replace(row, start_ns=row.start_ns + 5 * 10**9, end_ns=row.end_ns + 5 * 10**9) for row in second.observations
    ]
    met_late = [
        replace(record, rendezvous=replace(record.rendezvous, start_ns=rows[0].start_ns, load_end_ns=10**13))
        for rows, record in ((first.observations, first), (rows, replace(second, observations=rows)))
        if record.rendezvous
    ]
    assert [record.rendezvous.overlap for record in met_late if record.rendezvous] == [1.0, 1.0]
    launched(tmp_path, "vae", with_findings(met_late), uid=5)
    make_archive(tmp_path, tmp_path / "a.tar.zst", "0.1.0")
    assert ("numbers" in wrong(tmp_path / "a.tar.zst")) is is_wrong
