"""An archive has the files of a suite's directory, and no other archive passes for it."""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from commands.calling import Capture, call, write
from cotenant.errors import CotenantError
from cotenant.findings.rules import with_findings
from cotenant.proof import signature
from cotenant.proof.archive import END, MANIFEST, SEAL_BYTES, _block, _blocks, _seal, make_archive, packed, unpack
from cotenant.proof.verify import checks_of
from cotenant.results.journal import ARGUMENTS, FILE, Journal, Launched, Started, append, read_journal
from cotenant.results.record import Record
from cotenant.stats.tenants import common_load, overlap
from report.making import launch
from results.made import ISOLATION, hashes


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


def begun(directory: Path, *launches: str, **conditions: str) -> None:
    """Announce launches in a suite's journal."""
    append(directory, Started(suite="baselines", uid=0, host="h", time="t", launches=launches, conditions=conditions))


def launched(directory: Path, label: str, records: list[Record], uid: int = 0) -> None:
    """Write the records of a launch as a suite does, and name them in its journal."""
    before = set(directory.glob("*.json"))
    write(directory, records)
    files = hashes(sorted({*directory.glob("*.json")} - before))
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
    return {check.name: check.wrong for check in checks_of(unpack(archive), set()) if check.wrong}


def test_it_holds_what_the_suite_left(suite: Path) -> None:
    archive = unpack(suite / "run.tar.zst")
    assert archive.damage == ""
    assert {name for name in archive.members if "." in name} == {
        FILE,
        "summary.txt",
        "logs/vae.R0.T0.log",
        *(path.name for path in suite.glob("baselines.*.json")),
    }
    assert wrong(suite / "run.tar.zst") == {}
    notes = {check.name: check.note for check in checks_of(archive, set())}
    assert notes["journal"] == "Announced, and never finished: ssd (repetition 0)."


@given(st.data())
def test_one_byte_changed_anywhere_is_refused_with_its_place(suite: Path, data: st.DataObject) -> None:
    length, ends = (suite / "run.tar.zst").stat().st_size, ends_of(suite)
    # A decoder may overlook a change in the frame's header.
    places = [st.integers(begin, min(begin + 20, length - 1)) for begin in (0, *ends)]
    refused_in_its_place(suite, data.draw(st.one_of(st.integers(0, length - 1), *places)), data.draw(st.integers(0, 7)))


def test_a_frame_that_no_longer_says_that_it_has_a_checksum_is_refused_with_its_place(suite: Path) -> None:
    for begin in (0, *ends_of(suite)[:-1]):
        refused_in_its_place(suite, begin + 4, 2)


def refused_in_its_place(suite: Path, place: int, bit: int) -> None:
    content = bytearray((suite / "run.tar.zst").read_bytes())
    content[place] ^= 1 << bit
    changed = suite / "changed.tar.zst"
    changed.write_bytes(content)
    name = [*names_of(suite), "its end", "its seal"][bisect.bisect_right(ends_of(suite), place)]
    try:
        damage = unpack(changed).damage
    except CotenantError as error:
        damage = MANIFEST if "one with a damaged manifest" in str(error) else str(error)
    assert damage.partition(":")[0] == name or damage == PACKING


@functools.cache
def names_of(suite: Path) -> list[str]:
    return [MANIFEST, *unpack(suite / "run.tar.zst").members]


@functools.cache
def ends_of(suite: Path) -> list[int]:
    return list(itertools.accumulate(len(packed([block])) - SEAL_BYTES for block in blocks_of(suite)))


PACKING = "its members are whole, and its seal or its packing is not"


def blocks_of(suite: Path) -> list[bytes]:
    return list(_blocks((suite / "run.tar.zst").read_bytes()[:-SEAL_BYTES]))


def member(name: str, kind: bytes, **fields: Any) -> bytes:
    """A member that is no plain file, and holds nothing."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def frame(**claims: int) -> bytes:
    """The beginning of a frame of a few bytes, with these claims in its header."""
    compressor = zstandard.ZstdCompressor().compressobj(**claims)
    return compressor.compress(b"0") + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


def bomb() -> bytes:
    """The beginning of a frame that claims a mebibyte and holds more: bytes that are repeated 128 Ki times."""
    repeated = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b"0"
    return b"\x28\xb5\x2f\xfd\x80\x38" + (1 << 20).to_bytes(4, "little") + 64 * repeated


def sealed(frames: bytes) -> bytes:
    return frames + _seal(frames)


def hostile(blocks: list[bytes]) -> dict[str, tuple[bytes, str]]:
    """Archives whose sender has recomputed all hashes: the content, and the words of the refusal."""
    first, rest = blocks[0], blocks[1:]
    whole = packed(blocks)[:-SEAL_BYTES]
    head = packed([first])[:-SEAL_BYTES]
    strangers = {
        "../x.json": _block("../x.json", b"{}"),
        "/etc/x.json": _block("/etc/x.json", b"{}"),
        "logs/../x.log": _block("logs/../x.log", b""),
        "logs/.x.log": _block("logs/.x.log", b""),
        "x.py": _block("x.py", b""),
        "manifest.json": first,
        "summary.txt": member("summary.txt", tarfile.SYMTYPE),
        "a.json": member("a.json", tarfile.LNKTYPE),
        "b.json": member("b.json", tarfile.CHRTYPE),
        "logs": member("logs", tarfile.DIRTYPE),
        "c.json": member("c.json", tarfile.REGTYPE, size=1 << 40),
        "d.json": member("d.json", tarfile.GNUTYPE_SPARSE, size=1 << 40),
        "e.json": _block("e.json", b"") + _block("f.json", b""),
        "an escape": _block("x\x1b[31m.log", b""),
    }
    return {name: (packed([first, block, *rest]), "in its place stands '") for name, block in strangers.items()} | {
        "twice": (packed([first, rest[0], *rest]), "not twice"),
        "no tar": (packed([first, b"x" * 1024, *rest]), "invalid header"),
        "more behind": (packed([*blocks, rest[0], END]), "its end: there is more behind it"),
        "cut off": (sealed(whole[: len(whole) // 2]), "it is cut off"),
        "cut between": (packed(blocks[:-2]), "it is cut off"),
        "without its end": (packed(blocks[:-1]), "its end: it is cut off"),
        "half of it": (packed(blocks)[: len(whole) // 2], ""),
        "a tebibyte": (sealed(head + frame(size=1 << 40)), "more than an archive may hold, 1.00 GiB"),
        "of no size": (sealed(head + frame()), "more than an archive may hold, 1.00 GiB"),
        "a bomb": (sealed(head + bomb()), "a frame holds more than it says"),
        "a lie": (sealed(head + frame(size=1) + frame(size=1)[-4:]), ""),
        "empty": (b"", "is no archive, or one with a damaged manifest"),
        "a seal alone": (sealed(b""), "is no archive, or one with a damaged manifest"),
        "no manifest": (packed(rest), "is no archive, or one with a damaged manifest"),
        "a list": (packed([_block(MANIFEST, b"[]"), *rest]), "is no archive, or one with a damaged manifest"),
        "no UTF-8": (
            packed([_block(MANIFEST, b'{"cotenant": "\xff"}'), *rest]),
            "is no archive, or one with a damaged manifest",
        ),
    }


def test_what_is_no_archive_of_a_suite_is_refused_with_a_sentence(
    suite: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hostile.tar.zst"
    for name, (content, words) in hostile(blocks_of(suite)).items():
        path.write_bytes(content)
        try:
            damage = unpack(path).damage
        except CotenantError as error:
            damage = str(error)
            assert "is no archive, or one with a damaged manifest" in damage
        assert words in damage, name
        assert damage.isprintable()
    status, printed, _ = call(capsys, "verify", forge(suite, tmp_path, {"\x1b[31m.json": b""}))
    assert (status, "\x1b" in printed, "REFUSED: records, journal." in printed) == (1, False, True), printed
    monkeypatch.setattr("cotenant.proof.archive.MOST_BYTES", 1 << 14)
    with pytest.raises(CotenantError, match="holds more than an archive may, 0 MiB"):
        make_archive(suite, path, "0.1.0")


def test_who_makes_the_hashes_anew_is_caught_by_journal_numbers_and_rules(suite: Path, tmp_path: Path) -> None:
    vae = next(path.name for path in suite.glob("baselines.vae.*.json"))
    record = json.loads((suite / vae).read_bytes())
    rows, planned = record["observations"], record["isolation"]["planned"]
    slower = [row | {"end_ns": row["end_ns"] + 10} for row in rows[:20]] + rows[20:]
    scaled = {"devices": 2, "rate_of_one": 1.0, "efficiency": 0.99}
    changes: list[tuple[dict[str, Any], str, str]] = [
        ({"statistics": {"median": 2 * record["statistics"]["median"]}}, "numbers", "its median is"),
        ({"rendezvous": {"overlap": 0.5}}, "numbers", "its overlap is 0.5, and"),
        ({"observations": slower}, "numbers", "by its observations."),
        ({"observed": {"dtype": "fp16"}}, "rules", "the error precision is missing"),
        ({"meters": {"compute": {"mfu": 0.9}}}, "numbers", "its compute mfu is 0.9, and None by its observations"),
        ({"meters": {"scaling": scaled}}, "rules", "its scaling efficiency is 0.99, and None by"),
        (
            {"isolation": {"planned": planned | {"accelerators": 1e300}}},
            "rules",
            "rules cannot be asked of what no run writes",
        ),
        (
            {"observations": [row | {"kept": False} for row in rows]},
            "numbers",
            "its statistics are not those of its observations",
        ),
    ]
    for change, check, sentence in changes:
        found = wrong(forge(suite, tmp_path, {vae: edited(suite / vae, **change)}))
        assert sentence in " ".join(found[check]), sentence
        assert "is not what launch vae, repetition 0, wrote" in " ".join(found["journal"])
    broken = forge(suite, tmp_path, {vae: b'{"name": "\xff"}'})
    assert f"{vae} is no record of this version" in wrong(broken)["records"][0]
    others = [path.name for path in sorted(suite.glob("baselines.*.json"))]
    swapped = {name: (suite / other).read_bytes() for name, other in zip(others, reversed(others), strict=True)}
    assert len(wrong(forge(suite, tmp_path, swapped))["journal"]) == len(others)
    own, missing = (suite / vae).read_bytes(), f"{vae} of launch vae, repetition 0, is missing."
    strays: list[tuple[dict[str, bytes | None], str]] = [
        ({vae: None}, missing),
        ({vae: None, f"{vae}.unfinished": own}, missing),
        ({"baselines.wlm.R0.D0.json": own}, "baselines.wlm.R0.D0.json stands in no launch of the journal."),
    ]
    for changed, sentence in strays:
        assert wrong(forge(suite, tmp_path, changed))["journal"] == (sentence,)
    start, first, second = (suite / FILE).read_bytes().splitlines(keepends=True)
    misplaced = "line 2: it does not follow the line before it"
    for journal, sentence in (
        (start + second + first, misplaced),
        (start + second, misplaced),
        (start + first, "The journal does not end where the archive says."),
    ):
        assert sentence in wrong(forge(suite, tmp_path, {FILE: journal}))["journal"][0]


def test_an_archive_of_nothing_is_refused(suite: Path, tmp_path: Path, capsys: Capture) -> None:
    """Its sender has recomputed every hash: nothing in it is wrong, as there is nothing in it."""
    started = (suite / FILE).read_bytes().splitlines(keepends=True)[0]
    nothing: dict[str, bytes | None] = {path.name: None for path in suite.glob("baselines.*.json")}
    journals = {started: hashlib.sha256(started.rstrip()).hexdigest(), b"": Journal().head, b"junk": Journal().head}
    for journal, head in journals.items():
        archive = forge(suite, tmp_path, nothing | {FILE: journal}, head)
        found = wrong(archive)
        assert found["records"] == ("It holds no record: there is nothing that could hold.",)
        assert found.get("journal") == (
            None if journal == started else ("There is no journal: nothing says which launches there were.",)
        )
        status, printed, _ = call(capsys, "verify", archive)
        assert (status, "All of it holds" in printed) == (1, False), journal
    torn = forge(suite, tmp_path, {FILE: (suite / FILE).read_bytes() + b'{"previous": "'})
    assert wrong(torn)["journal"] == ("The journal's last line is cut off.",)


def edited(path: Path, **changes: Any) -> bytes:
    """Return the content of a record with other fields; of a field that is a mapping only the given ones change."""
    record = json.loads(path.read_bytes())
    for name, value in changes.items():
        record[name] = record[name] | value if isinstance(value, dict) else value
    return json.dumps(record).encode()


def forge(suite: Path, folder: Path, changes: dict[str, bytes | None], head: str | None = None) -> Path:
    """Write an archive with changed members and recomputed hashes; `head`: the hash of the journal's last line."""
    archive = unpack(suite / "run.tar.zst")
    members = {name: content for name, content in {**archive.members, **changes}.items() if content is not None}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    manifest = json.dumps(
        {
            "cotenant": "0.1.0",
            "made": "t",
            "members": digests,
            "journal_head": archive.manifest.journal_head if head is None else head,
            "schema": "cotenant-archive-1",
        }
    ).encode()
    blocks = [_block(name, content) for name, content in {MANIFEST: manifest, **members}.items()]
    path = folder / "forged.tar.zst"
    path.write_bytes(packed([*blocks, END]))
    return path


def test_arguments_behind_the_job_files_own_are_named(suite: Path, tmp_path: Path) -> None:
    directory = tmp_path / "suite"
    shutil.copytree(suite, directory, symlinks=True)
    for words in ([], ["--batch-size", "512"], ["--batch-size", "512"]):
        begun(directory, "vae", **{ARGUMENTS: json.dumps(words)})
    make_archive(directory, tmp_path / "run.tar.zst", "0.1.0")
    assert wrong(tmp_path / "run.tar.zst") == {}
    (note,) = [check.note for check in checks_of(unpack(tmp_path / "run.tar.zst"), set()) if check.name == "class"]
    assert note == "These arguments stood behind --, and base results have none: --batch-size 512."


def test_commands(suite: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out.tar.zst"
    status, printed, _ = call(capsys, "archive", suite, "-o", out)
    assert status == 0
    assert printed.startswith(f"{out}: 7 files, journal ")
    status, printed, _ = call(capsys, "verify", out)
    assert (status, printed.splitlines()[-1]) == (0, "All of it holds.")
    assert "There is none: whoever changed it may have made all hashes anew." in printed
    status, printed, _ = call(capsys, "verify", forge(suite, tmp_path, {FILE: b""}))
    assert (status, printed.splitlines()[-1]) == (1, "REFUSED: journal.")
    empty = tmp_path / "empty"
    empty.mkdir()
    for words, sentence in {
        ("archive", empty, "-o", out): f"{empty} has no journal: no suite of this version has run there.",
        ("verify", suite / "summary.txt"): "is no archive, or one with a damaged manifest",
        ("verify", empty): "cannot be read",
    }.items():
        status, _, errors = call(capsys, *words)
        assert (status, sentence in errors) == (2, True), errors
    # Other tools read it as well: unzstd passes over the seal.
    with zstandard.open(out, "rb") as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
        assert tar.getnames() == [MANIFEST, *unpack(out).members]


def test_what_no_launch_in_the_journal_wrote_is_named_and_not_archived(
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
    assert errors.startswith("cotenant: Not archived, as written by no launch in the journal: baselines.ssd.R0.D")
    assert ", table.json. Where a suite still runs, archive again when it has ended.\n" in errors
    status, printed, _ = call(capsys, "verify", out)
    assert (status, printed.splitlines()[-1]) == (0, "All of it holds."), printed


def test_a_signature_is_of_this_archive_by_this_key(suite: Path, tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("cryptography", reason="the extra `proof` is not installed")
    keys = [tmp_path / name for name in ("mine.pem", "other.pem")]
    for key in keys:
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
        subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", key.with_suffix(".pub")], check=True)
    mine, other = (key.with_suffix(".pub") for key in keys)
    out = tmp_path / "run.tar.zst"
    assert call(capsys, "archive", suite, "-o", out, "--key", keys[0])[0] == 0
    assert signature.wrong_signature(out, mine) == ""
    assert signature.wrong_signature(out, other) == "Its signature is not of this key."
    status, printed, _ = call(capsys, "verify", out, "--key", mine)
    assert (status, printed.splitlines()[-1]) == (0, "All of it holds.")
    forged = forge(suite, tmp_path, {"summary.txt": b""})
    forged.with_name(forged.name + ".sig").write_bytes((tmp_path / "run.tar.zst.sig").read_bytes())
    assert call(capsys, "verify", forged, "--key", mine)[1].splitlines()[-1] == "REFUSED: signature."
    assert signature.wrong_signature(forged, mine) == "Its signature is of another archive."
    forged.with_name(forged.name + ".sig").write_bytes(100_000 * b"[")
    assert "cannot be read: maximum recursion depth" in signature.wrong_signature(forged, mine)
    forged.with_name(forged.name + ".sig").unlink()
    assert signature.wrong_signature(forged, mine) == "There is no signature beside it."
    status, _, errors = call(capsys, "verify", out, "--key", suite / "summary.txt")
    assert (status, "is no public key" in errors) == (2, True)


def test_a_finding_that_was_taken_out_is_missed(tmp_path: Path) -> None:
    records = launch("vae", uid=5)
    records = [replace(record, observed={**record.observed, "dtype": "fp16"}) for record in records]
    assert all(record.invalid for record in with_findings(records))
    launched(tmp_path, "vae", records, uid=5)
    make_archive(tmp_path, tmp_path / "a.tar.zst", "0.1.0")
    assert "vae, repetition 5, user 0: the error precision is missing." in wrong(tmp_path / "a.tar.zst")["rules"]


@pytest.mark.parametrize(
    ("early", "is_wrong"),
    [({"sharers": 2}, False), ({"isolation": replace(ISOLATION, policies={"settle_s": 3.0})}, False), ({}, True)],
)
def test_who_shares_processors_or_settles_is_under_load_from_t0_on(
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
