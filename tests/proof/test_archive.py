"""An archive is what a directory held, and nothing else passes for it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Callable
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
from cotenant.proof.archive import MANIFEST, SEAL_BYTES, _seal, make_archive, unpack
from cotenant.proof.verify import checks_of
from cotenant.results.journal import FILE, Launched, Started, append, hashes
from cotenant.results.record import Record
from cotenant.stats.tenants import common_load, overlap
from report.making import launch


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two launches as a suite leaves them, and an archive of them."""
    directory = tmp_path_factory.mktemp("suite")
    append(
        directory, Started(suite="baselines", uid=0, host="h", time="t", launches=("vae", "cart", "ssd"), conditions={})
    )
    for name in ("vae", "cart"):
        before = set(directory.glob("*.json"))
        write(directory, with_findings(met(launch(name))))
        files = hashes(sorted({*directory.glob("*.json")} - before))
        append(
            directory,
            Launched(suite="baselines", uid=0, label=name, time="t", outcomes=("completed",) * 2, records=files),
        )
    (directory / "summary.txt").write_text("Total Time 1.00 s\n")
    (directory / "logs").mkdir()
    (directory / "logs" / "vae.R0.T0.log").write_text("a line\n")
    (directory / "other.txt").write_text("nobody's business")
    (directory / "link.json").symlink_to("/etc/passwd")
    make_archive(directory, directory / "run.tar.zst", "0.1.0")
    return directory


def met(records: list[Record]) -> list[Record]:
    """The records of a launch with the overlap that their observations have."""
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
def test_one_byte_changed_anywhere_is_refused(suite: Path, data: st.DataObject) -> None:
    content = bytearray((suite / "run.tar.zst").read_bytes())
    # The frame's header is where a decoder would look away.
    place = data.draw(st.one_of(st.integers(0, 20), st.integers(0, len(content) - 1)))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    changed = suite / "changed.tar.zst"
    changed.write_bytes(content)
    with contextlib.suppress(CotenantError):
        assert unpack(changed).damage


def test_who_makes_the_hashes_anew_is_caught_by_journal_numbers_and_rules(suite: Path, tmp_path: Path) -> None:
    vae = next(path.name for path in suite.glob("baselines.vae.*.json"))

    def faster(record: dict[str, Any]) -> None:
        record["statistics"]["median"] *= 2

    def later(record: dict[str, Any]) -> None:
        record["rendezvous"]["overlap"] = 0.5

    def slower(record: dict[str, Any]) -> None:
        for observed in record["observations"][:20]:
            observed["end_ns"] += 10

    def in_fp16(record: dict[str, Any]) -> None:
        record["observed"]["dtype"] = "fp16"

    for change, check, sentence in (
        (faster, "numbers", "its median is"),
        (later, "numbers", "its overlap is 0.5, and"),
        (slower, "numbers", "by its observations."),
        (in_fp16, "rules", "the error precision is missing"),
    ):
        forged = forge(suite, tmp_path, {vae: edited(suite / vae, change)})
        assert sentence in " ".join(wrong(forged)[check]), change
        assert "is not what launch vae, repetition 0, wrote" in " ".join(wrong(forged)["journal"])
    without = forge(suite, tmp_path, {vae: None})
    assert wrong(without)["journal"] == (f"{vae} of launch vae, repetition 0, is missing.",)
    more = forge(suite, tmp_path, {"baselines.wlm.R0.D0.json": (suite / vae).read_bytes()})
    assert wrong(more)["journal"] == ("baselines.wlm.R0.D0.json stands in no launch of the journal.",)
    lines = (suite / FILE).read_bytes().splitlines(keepends=True)
    dropped = forge(suite, tmp_path, {FILE: lines[0] + lines[2]})
    assert "line 2: it does not follow the line before it" in wrong(dropped)["journal"][0]
    cut = forge(suite, tmp_path, {FILE: lines[0] + lines[1]})
    assert wrong(cut)["journal"][0] == "The journal does not end where the archive says."


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> bytes:
    record = json.loads(path.read_bytes())
    change(record)
    return json.dumps(record).encode()


def forge(suite: Path, folder: Path, changes: dict[str, bytes | None]) -> Path:
    """Write an archive with other members, all of its own hashes made anew."""
    archive = unpack(suite / "run.tar.zst")
    members = {name: content for name, content in {**archive.members, **changes}.items() if content is not None}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    manifest = json.dumps(
        {
            "cotenant": "0.1.0",
            "made": "t",
            "members": digests,
            "journal_head": archive.manifest.journal_head,
            "schema": "cotenant-archive-1",
        }
    ).encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in {MANIFEST: manifest, **members}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(stream.getvalue())
    path = folder / "forged.tar.zst"
    path.write_bytes(packed + _seal(packed))
    return path


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
        ("verify", suite / "summary.txt"): "is no archive, or a damaged one",
        ("verify", empty): "cannot be read",
    }.items():
        status, _, errors = call(capsys, *words)
        assert (status, sentence in errors) == (2, True), errors
    # Other tools read it as well: unzstd passes over the seal.
    plain = zstandard.ZstdDecompressor().decompress(out.read_bytes()[:-SEAL_BYTES])
    assert tarfile.open(fileobj=io.BytesIO(plain)).getnames()[0] == MANIFEST


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
    forged.with_name(forged.name + ".sig").unlink()
    assert signature.wrong_signature(forged, mine) == "There is no signature beside it."
    status, _, errors = call(capsys, "verify", out, "--key", suite / "summary.txt")
    assert (status, "is no public key" in errors) == (2, True)


def test_a_finding_that_was_taken_out_is_missed(suite: Path, tmp_path: Path) -> None:
    records = launch("vae", uid=5)
    records = [replace(record, observed={**record.observed, "dtype": "fp16"}) for record in records]
    assert all(record.invalid for record in with_findings(records))
    directory = tmp_path / "d"
    append_all(directory, write_all(directory, records))
    make_archive(directory, directory / "a.tar.zst", "0.1.0")
    assert "vae, repetition 5, tenant 0: the error precision is missing." in wrong(directory / "a.tar.zst")["rules"]


def write_all(directory: Path, records: list[Any]) -> dict[str, str]:
    return hashes(write(directory, records).glob("*.json"))


def append_all(directory: Path, files: dict[str, str]) -> None:
    append(directory, Launched(suite="baselines", uid=5, label="vae", time="t", outcomes=(), records=files))
