"""An archive with the transcript of a challenge: it is judged again, and must belong to the records of its launch."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from challenge.vendors import Vendor, challenged
from commands.calling import Capture, call, write
from cotenant.challenge.transcript import Transcript, written
from cotenant.findings.rules import with_findings
from cotenant.proof.transcripts import challenges
from cotenant.results.journal import Challenged, Launched, append
from cotenant.results.record import Record, restored
from proof.test_archive import edited, forge, met, wrong
from report.making import launch
from results.made import hashes

LAUNCH = "vae.challenge"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Transcript]:
    """A challenged launch as a suite leaves it, and the buyer's transcript of it."""
    directory, transcript = tmp_path_factory.mktemp("suite"), challenged(Vendor())
    records = [
        replace(
            record,
            observed=record.observed | {"challenge": {"chain": chain.head}},
            arguments=record.arguments | {"seed": chain.seed},
            command=["work/run.sh", *chain.join.words, "--seed", "7"],
        )
        for record, chain in zip(launch(LAUNCH), transcript.chains, strict=True)
    ]
    records = with_findings(met(records))
    files = hashes(write(directory, records).glob("*.json"))
    append(directory, Launched(suite="s", uid=0, label=LAUNCH, time="t", outcomes=("completed",), records=files))
    path = directory / "s.R0.one.challenge"
    path.write_bytes(written(transcript))
    append(directory, Challenged(suite="s", uid=0, label=LAUNCH, time="t", files=hashes([path])))
    return directory, transcript


def test_words_and_floor_are_held_against_the_records(suite: tuple[Path, Transcript]) -> None:
    directory, transcript = suite
    held = {"a.challenge": written(transcript)}
    records = [restored(path.read_bytes()) for path in sorted(directory.glob("*.json"))]
    assert challenges(held, records).wrong == ()

    def with_other_arguments(held: dict[str, bytes], records: list[Record]) -> int:
        return sum("its record has other arguments" in one for one in challenges(held, records).wrong)

    def begun_with(*words: str) -> dict[str, bytes]:
        """Return the transcript of tenants that joined with these words before theirs."""
        chains = [
            replace(chain, join=replace(chain.join, words=(*words, *chain.join.words))) for chain in transcript.chains
        ]
        return {"a.challenge": written(replace(transcript, chains=chains))}

    other = [replace(record, command=["work/run.sh", "--lr", "400"]) for record in records]
    assert with_other_arguments(held, other) == 2
    assert with_other_arguments(begun_with("--fp16"), records) == 0
    # A secret is a hash in the record, and stands in no transcript.
    keyed = [replace(one, command=["run.sh", "--api-key", "hidden:0f", *one.command[1:]]) for one in records]
    assert with_other_arguments(begun_with("--api-key", "(hidden)"), keyed) == 0
    for rate in (1e-6, 0.0):
        slower = [replace(each, train_item=replace(each.train_item, avg=rate)) for each in records if each.train_item]
        (impossible,) = challenges(held, slower).wrong
        assert f"items/s of a rate of {2 * rate:.4g}: it is of other work" in impossible


def test_a_transcript_is_judged_with_the_records_of_its_launch(
    suite: tuple[Path, Transcript], tmp_path: Path, capsys: Capture
) -> None:
    directory, transcript = suite
    bought = directory / "challenge.of_another.challenge"  # from another launch, as a buyer
    bought.write_bytes(written(transcript))
    assert call(capsys, "archive", directory, "-o", directory / "run.tar.zst")[0] == 0
    bought.unlink()
    status, printed, _ = call(capsys, "verify", directory / "run.tar.zst")
    assert (status, printed.splitlines()[-1]) == (0, "All of it holds.")
    assert "challenge  -    1 transcript, judged anew" in printed
    assert "items/s of 2 users in 5.0 s by the buyer's clock; 4 of" in printed
    (name,) = (path.name for path in directory.glob("*.challenge"))
    record = sorted(path.name for path in directory.glob("*.json"))[0]
    cheaper = [*transcript.chains[0].exchanges]
    cheaper[0] = replace(cheaper[0], losses=bytes(len(cheaper[0].losses)))
    chains = [replace(transcript.chains[0], exchanges=cheaper), *transcript.chains[1:]]
    unlike: dict[str, tuple[dict[str, bytes | None], str]] = {
        "is not what the buyer sent, or is missing": ({name: None}, "journal"),
        "No piece of 2 users was made again": ({name: written(replace(transcript, replays=[]))}, "challenge"),
        "its digest does not match the answers": ({name: written(replace(transcript, chains=chains))}, "challenge"),
        "is no transcript of this version": ({name: b'{"time": "\xff"}'}, "challenge"),
        "stands in no launch of the journal": ({"s.R0.two.challenge": written(transcript)}, "journal"),
        "the record of user 0 is of another user or seed": (
            {record: edited(directory / record, seed=1)},
            "challenge",
        ),
        "no record has the end of user 0's chain": (
            {record: edited(directory / record, observed={"challenge": {"chain": ["no", "text"]}})},
            "challenge",
        ),
    }
    for sentence, (changes, check) in unlike.items():
        forged = forge(directory, tmp_path, changes)
        assert sentence in " ".join(wrong(forged)[check]), sentence
    # A sender who also removes its line from the journal can recompute the hashes, but the records still tell.
    journal = (directory / "cotenant.journal").read_bytes().splitlines(keepends=True)
    without = forge(directory, tmp_path, {name: None, "cotenant.journal": journal[0]})
    printed = call(capsys, "verify", without)[1]
    both = ", ".join(f"{LAUNCH}, repetition 0, user {tenant}" for tenant in (0, 1))
    assert f"Challenged, and without a transcript here: {both}." in printed
