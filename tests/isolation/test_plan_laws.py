"""The planner's laws, on random machines: equal, apart, whole, near, within every limit, and always the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from cotenant.isolation.cores import cores_by_node, mixtures
from cotenant.isolation.memory_shares import PAGE_BYTES, Mems, equal_share
from cotenant.isolation.plan import Plan, Policy, plan, plan_whole, split_ranks
from cotenant.machine.topology import Machine
from isolation.test_plan import processors, rules
from machine.invented import GIB, device, machine


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    nodes, cores, threads = draw(st.tuples(st.integers(1, 4), st.integers(1, 9), st.sampled_from((1, 2, 2, 4))))
    total = nodes * cores * threads
    devices = draw(st.lists(st.integers(-1, nodes), max_size=8))
    missing = draw(st.sets(st.integers(0, total - 1), max_size=total - 1) if draw(st.booleans()) else st.just(set()))
    made = machine(
        nodes,
        cores,
        threads,
        memory_bytes=draw(st.integers(16, 2048)) * GIB + draw(st.integers(0, 9999)),
        node_bytes=tuple(draw(st.lists(st.integers(4, 512).map(GIB.__mul__), min_size=nodes, max_size=nodes))),
        devices=tuple(device(i, node) for i, node in enumerate(devices)),
        quota=draw(st.none() | st.floats(0.1, 2.0 * total)),
        without=tuple(missing),
    )
    kinds = draw(st.sets(st.integers(0, nodes * cores - 1)))
    marked = tuple(replace(p, kind="atom") if p.core in kinds else p for p in made.processors)
    return replace(made, processors=marked)


def drawn_plan(data: st.DataObject, host: Machine, tenants: int) -> tuple[Plan, Policy]:
    """Return a plan by any policy, which is the same in whatever order processors are listed."""
    policy: Policy = data.draw(st.sampled_from(("cores", "contiguous")))
    mems: Mems = data.draw(st.sampled_from(("local", "all")))
    made = plan(host, tenants, policy=policy, mems=mems)
    shuffled = data.draw(st.permutations(host.processors))
    assert made == plan(replace(host, processors=tuple(shuffled)), tenants, policy=policy, mems=mems)
    memory_fits(host, made, mems)
    return made, policy


def fitting(host: Machine) -> int:
    usable = len(host.processors)
    return usable if host.quota_processors is None else max(1, min(usable, int(host.quota_processors)))


@given(st.data(), machines())
def test_laws(data: st.DataObject, host: Machine) -> None:
    limit = fitting(host)
    # Of whole numbers half would be 1.
    tenants = data.draw(st.sampled_from(range(1, limit + 1)))
    made, policy = drawn_plan(data, host, tenants)
    given_out = [number for hand in processors(made) for number in hand]
    assert len(given_out) == len(set(given_out)) <= limit
    assert sorted((*given_out, *made.unused_processors)) == [p.id for p in host.processors]
    assert len({len(hand) for hand in processors(made)}) == 1
    assert len(processors(made)[0]) >= 1
    assert all(hand == tuple(sorted(hand)) for hand in processors(made))
    assert len({piece.memory_bytes for piece in made.slices}) == 1
    memory = made.slices[0].memory_bytes
    assert memory % PAGE_BYTES == 0
    assert 0 < memory * tenants <= host.memory_bytes - made.reserve_bytes
    sharing = [sum(d in piece.accelerators for piece in made.slices) for d in host.accelerators]
    assert max(sharing, default=0) <= -(-tenants // max(len(host.accelerators), 1))
    shares = {len(piece.accelerators) for piece in made.slices}
    assert shares == {max(len(host.accelerators) // tenants, 1 if host.accelerators else 0)}
    first, *others = mixtures(host.processors, processors(made))
    assert any(other != first for other in others) == ("cores_uneven" in rules(made))
    if policy == "cores":
        cores_stay_whole(host, made)


def memory_fits(host: Machine, made: Plan, mems: Mems) -> None:
    """However slices overlap, those inside any set of nodes fit that set without its part of the reserve."""
    everything = max(host.memory_bytes, sum(node.memory_bytes for node in host.nodes))
    ids = [node.id for node in host.nodes]
    for some in chain.from_iterable(combinations(host.nodes, count) for count in range(1, len(ids))):
        local = sum(node.memory_bytes for node in some)
        inside = [piece for piece in made.slices if {node.id for node in some}.issuperset(piece.nodes)]
        assert sum(piece.memory_bytes for piece in inside) <= local - made.reserve_bytes * local // everything
    homes = {p.id: p.node for p in host.processors}
    for piece in made.slices:
        assert set(piece.nodes) == ({homes[number] for number in piece.processors} if mems == "local" else set(ids))


def cores_stay_whole(host: Machine, made: Plan) -> None:
    """No core serves two tenants while there are enough, and where all are alike each has as many as come out."""
    core_of = {p.id: p.core for p in host.processors}
    members: defaultdict[int, set[int]] = defaultdict(set)
    for processor in host.processors:
        members[processor.core].add(processor.id)
    tenants = len(made.slices)
    if len(members) < tenants:
        return
    sharers = Counter(core for piece in made.slices for core in {core_of[number] for number in piece.processors})
    assert set(sharers.values()) == {1}
    assert "siblings_split" not in rules(made)
    alike = len({len(core) for core in members.values()}) == len({p.kind for p in host.processors}) == 1
    if alike and fitting(host) == len(host.processors):
        assert all(members[core_of[n]] <= set(hand) for hand in processors(made) for n in hand)
        largest = len(members) // tenants * len(members[core_of[made.slices[0].processors[0]]])
        assert largest * 7 / 8 <= len(made.slices[0].processors) <= largest


@given(st.data(), machines())
def test_laws_of_sharing(data: st.DataObject, host: Machine) -> None:
    """Every processor is used, by equally many tenants, and no core and, where that can be, no node by two groups."""
    limit = fitting(host)
    tenants = data.draw(st.integers(limit + 1, 4 * limit))
    made, policy = drawn_plan(data, host, tenants)
    used = set(chain.from_iterable(made.parts))
    assert len(used) == sum(map(len, made.parts)) == limit
    assert sorted((*used, *made.unused_processors)) == [p.id for p in host.processors]
    sharing = Counter(processors(made))
    assert set(sharing.values()) == {made.sharers} == {piece.sharers for piece in made.slices}
    assert len({len(part) for part in made.parts}) == 1
    assert 0 < made.slices[0].memory_bytes * tenants <= host.memory_bytes - made.reserve_bytes
    assert "processors_shared" in rules(made)
    if policy == "contiguous":
        return
    assert "siblings_split" not in rules(made)
    widths = {len(core) for cores in cores_by_node(host.processors).values() for core in cores}
    if limit == len(host.processors) and len(widths) == 1:
        nodes, width = Counter(p.node for p in host.processors).values(), widths.pop()
        even = [size for size in range(width, limit + 1, width) if limit % size == tenants % (limit // size) == 0]
        assert any(all(count % size == 0 for count in nodes) for size in even) != ("nodes_straddled" in rules(made))


@given(st.integers(1, 4), st.integers(0, 5), st.integers(0, 5))
def test_kinds_that_divide_are_dealt_alike(tenants: int, wide: int, narrow: int) -> None:
    if not wide + narrow:
        return
    host = machine(cores=tenants * (wide + narrow))
    marked = tuple(replace(p, kind="core" if p.id < tenants * wide else "atom") for p in host.processors)
    for users, expected in [(tenants, []), (2 * len(marked), ["processors_shared"])]:
        made = plan(replace(host, processors=marked), users)
        assert made.unused_processors == ()
        assert rules(made) == expected


@given(st.integers(1, 4), st.integers(1, 8), st.integers(0, 7), st.sampled_from((1, 2)))
def test_equal_nodes_are_never_straddled_by_a_multiple_of_them(
    nodes: int, per_node: int, spare: int, threads: int
) -> None:
    devices = tuple(device(i, node=i % nodes) for i in range(nodes * per_node))
    made = plan(machine(nodes, per_node + spare, threads, devices=devices), nodes * per_node)
    assert [piece.nodes for piece in made.slices] == [(i % nodes,) for i in range(nodes * per_node)]
    assert set(rules(made)) <= {"processors_unused"}


@given(st.data(), st.lists(st.integers(1, 64), min_size=1, max_size=5))
def test_memory_is_all_that_every_set_of_nodes_can_give(data: st.DataObject, sizes: list[int]) -> None:
    ids = range(len(sizes))
    slices = data.draw(st.lists(st.sets(st.sampled_from(ids), min_size=1).map(tuple), min_size=1, max_size=8))
    host = machine(len(sizes), 1, memory_bytes=sum(sizes) * GIB, node_bytes=tuple(size * GIB for size in sizes))
    some = chain.from_iterable(combinations(ids, count) for count in range(1, len(sizes) + 1))
    inside = {nodes: sum(set(nodes).issuperset(own) for own in slices) for nodes in some}
    least = min(sum(sizes[node] for node in nodes) * GIB // count for nodes, count in inside.items() if count)
    least = min(least, host.memory_bytes // len(slices))
    assert equal_share(host, slices, 0) == least // PAGE_BYTES * PAGE_BYTES


def test_slices_on_one_node_and_on_two_share_what_these_give() -> None:
    """Node 0 alone would give the first slice 2 GiB, but the second then has 1 GiB; the third has room."""
    host = machine(3, 1, memory_bytes=13 * GIB, node_bytes=(2 * GIB, GIB, 10 * GIB))
    assert equal_share(host, [(0,), (0, 1), (2,)], 0) == 3 * GIB // 2


@given(st.data(), machines())
def test_laws_of_ranks(data: st.DataObject, host: Machine) -> None:
    whole = plan_whole(host).slices[0]
    ranks = data.draw(st.integers(1, len(whole.processors)))
    hands = split_ranks(host, whole, ranks)
    pinned = [number for hand in hands for number in hand]
    assert len(hands) == ranks
    assert len(pinned) == len(set(pinned))
    assert set(pinned) <= set(whole.processors)
    assert len({len(hand) for hand in hands}) == 1
