"""When a real set is fetched, from where, what stands in its way, and what is kept."""

import errno
import json
import os
import shutil
from dataclasses import replace

import pytest

from cotenant.datasets import files, obtaining, problems
from cotenant.datasets.making import ensure
from cotenant.datasets.manifest import read_manifest
from cotenant.datasets.real import plan
from cotenant.datasets.real.order import RealOrder
from cotenant.errors import CotenantError
from datasets import loopback
from datasets.loopback import status
from datasets.miniature import bsds500, jpeg, tar
from datasets.real_sets import FAKE, get, tree


def test_a_set_is_fetched_once(order, server, capsys):
    get(order())
    wanted = order()
    assert sorted(path for path, _ in server.requests) == sorted(server.files)
    assert sorted(path.name for path in wanted.root.iterdir()) == [".locks", "mnist"]
    server.requests.clear()
    get(wanted)
    assert server.requests == []
    assert capsys.readouterr().err.endswith(f"mnist: present (real, all) in {wanted.folder}\n")


def test_the_manifest_tells_it_all(order, server):
    get(order("bsds500", published=False))
    written = json.loads((order("bsds500").folder / "manifest.json").read_text())
    (source,) = written.pop("sources")
    content = server.files["/BSR_bsds500.tgz"]
    assert source == {
        "file": "BSR_bsds500.tgz",
        "source": server.url("/BSR_bsds500.tgz"),
        "bytes": len(content),
        "sha256": source["sha256"],
        "verified_by": None,
    }
    assert written == {
        "name": "bsds500",
        "size": "full",
        "kind": "real",
        "seed": 0,
        "version": 1,
        "files": 6,
        "bytes": 3 * (len(jpeg(1)) + len(jpeg(2))),
        "splits": {"train": 2, "val": 2, "test": 2},
        "half": "all",
        "taken_from": None,
    }


def test_the_whole_serves_its_half_and_a_half_gives_way_to_the_whole(order, server):
    get(order(half="validation"))
    manifest = read_manifest(order().folder)
    assert manifest is not None
    assert manifest.half == "validation"
    assert sorted(path for path, _ in server.requests) == ["/t10k-images-idx3-ubyte.gz", "/t10k-labels-idx1-ubyte.gz"]
    get(order())
    manifest = read_manifest(order().folder)
    assert manifest is not None
    assert (manifest.half, len(manifest.sources)) == ("all", 4)
    server.requests.clear()
    get(order(half="validation"))
    assert server.requests == []


def test_a_fake_set_gives_way_to_the_real_one_and_never_the_other_way(order, server, capsys):
    root = order().root
    ensure(root, FAKE, "full", processes=1)
    server.answers["/t10k-labels-idx1-ubyte.gz"] = [status(404)]
    with pytest.raises(CotenantError):
        get(order())
    standing = read_manifest(root / "mnist")
    assert standing is not None
    assert standing.kind == "fake"
    get(order())
    assert "mnist: the fake set that stood there has been replaced" in capsys.readouterr().err
    before = tree(root / "mnist"), (root / "mnist" / "manifest.json").read_bytes()
    with pytest.raises(CotenantError) as caught:
        ensure(root, FAKE, "small", processes=1)
    assert str(caught.value) == (
        f"{root}/mnist holds the real set, which a fake one never replaces. Use it with FAKE_DATASET=0,"
        " or give another place with --root DIR or DATA_DIRECTORY for fake sets."
    )
    assert (tree(root / "mnist"), (root / "mnist" / "manifest.json").read_bytes()) == before


def test_a_persons_own_folder_is_left_alone(order, server):
    wanted = order()
    wanted.folder.mkdir(parents=True)
    (wanted.folder / "mine").write_text("mine")
    with pytest.raises(CotenantError, match=r"may be your own\. Move the folder away, then name it with --from DIR"):
        get(wanted)
    assert server.requests == []
    assert tree(wanted.root) == ["mnist/mine"]


def test_what_arrived_is_kept_and_taken_up(order, server):
    server.answers["/train-images-idx3-ubyte.gz"] = [loopback.cut(100), status(404)]
    with pytest.raises(CotenantError, match="it answers 404"):
        get(order())
    arriving = order().root / ".arriving" / "mnist"
    assert tree(arriving) == ["train-images-idx3-ubyte.gz.arriving", "train-images-idx3-ubyte.gz.arriving.json"]
    server.requests.clear()
    get(order())
    assert server.requests[0][1]["Range"] == "bytes=100-"
    assert not arriving.parent.exists()


def test_what_arrived_for_the_other_half_stays(order, server):
    server.answers["/train-images-idx3-ubyte.gz"] = [loopback.cut(100), status(404)]
    with pytest.raises(CotenantError):
        get(order())
    get(order(half="validation"))
    assert tree(order().arriving) == [
        "train-images-idx3-ubyte.gz.arriving",
        "train-images-idx3-ubyte.gz.arriving.json",
    ]


def test_two_gigabytes_are_the_most_unasked(order, server, monkeypatch):
    def sized(wanted: RealOrder) -> RealOrder:
        halves = {
            name: replace(half, unpacked_bytes=3_000_000_000 if name == "all" else 10)
            for name, half in wanted.real.halves.items()
        }
        return replace(wanted, real=replace(wanted.real, halves=halves))

    with pytest.raises(CotenantError) as caught:
        get(sized(order()))
    assert "mnist (real, all) writes 3.0 GB below" in str(caught.value)
    assert "no more than 2.0 GB are written without being asked. Ask with --size full" in str(caught.value)
    assert "USE_VALIDATION=1 takes the smaller half." in str(caught.value)
    assert not order().root.exists()
    assert server.requests == []
    get(sized(order(large=True)))
    assert order().folder.is_dir()


def test_a_copy_from_another_disk_counts_too(order, tmp_path, monkeypatch):
    wanted = order("bsds500", local=tmp_path / "mine")
    for path in wanted.wanted.paths:
        (tmp_path / "mine" / path).mkdir(parents=True)
    monkeypatch.setattr(plan, "UNASKED_BYTES", 99_999)
    get(wanted)  # Second names on the same disk take no room.
    (wanted.folder / "manifest.json").unlink()
    shutil.rmtree(wanted.folder)
    monkeypatch.setattr(plan, "_adopted_bytes", lambda order, source: 100_000)
    with pytest.raises(CotenantError, match=r"bsds500 \(real, all\) writes 100 kB"):
        get(wanted)


@pytest.mark.parametrize("size", ["published", "announced"])
def test_a_disk_that_is_too_small_is_said_before_anything_is_written(order, server, monkeypatch, size):
    monkeypatch.setattr(problems, "free_disk_bytes", lambda path: 100_300)
    wanted = order("bsds500", published=size == "published")
    if size == "announced":
        small = tuple(replace(one, size_bytes=250) for one in wanted.wanted.archives)
        wanted = replace(wanted, real=replace(wanted.real, halves={"all": replace(wanted.wanted, archives=small)}))
        server.files["/BSR_bsds500.tgz"] = bytes(400)
    with pytest.raises(CotenantError, match=r"bsds500 \(real, all\) needs 10. kB and .* has 100 kB free"):
        get(wanted)
    assert [name for name in tree(wanted.root) if name != ".locks/bsds500"] == []


def test_a_disk_that_becomes_full_is_one_sentence(order, server, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(obtaining, "write_manifest", full)
    with pytest.raises(CotenantError, match=r"became full while mnist \(real, all\) was made"):
        get(order())
    assert read_manifest(order().folder) is None
    monkeypatch.undo()
    server.requests.clear()
    get(order())
    assert server.requests == []  # The archives had arrived.
    assert order().folder.is_dir()


def test_what_a_killed_run_left_counts_as_room(order, monkeypatch):
    wanted = order()
    (wanted.root / ".making" / "mnist-real-all").mkdir(parents=True)
    (wanted.root / ".making" / "mnist-real-all" / "half").write_bytes(b"x" * 80_000)
    needed = wanted.wanted.archive_bytes + wanted.wanted.unpacked_bytes
    monkeypatch.setattr(problems, "free_disk_bytes", lambda path: needed - 70_000)
    monkeypatch.setattr(obtaining, "_expect", lambda order, size: None)
    get(wanted)
    assert wanted.folder.is_dir()


def test_what_a_killed_run_left_goes(order):
    wanted = order()
    (wanted.root / ".making" / "mnist-real-all" / "mine").mkdir(parents=True)
    (wanted.root / ".making" / "mnist-real-all.old").mkdir()
    get(wanted)
    assert sorted(path.name for path in wanted.root.iterdir()) == [".locks", "mnist"]
    (wanted.root / ".making" / "mnist-real-all.old").mkdir(parents=True)
    wanted.arriving.mkdir(parents=True)
    (wanted.arriving / wanted.wanted.archives[0].name).write_text("whole")
    get(wanted)
    assert sorted(path.name for path in wanted.root.iterdir()) == [".locks", "mnist"]


def test_first_use_is_trusted_and_later_runs_compare(order, server, capsys):
    get(order("bsds500", "validation", published=False))
    said = capsys.readouterr().err
    assert "BSR_bsds500.tgz: could not be verified, as nobody is known to have recorded a checksum of it" in said
    get(order("bsds500", published=False))
    assert "could not be verified" not in capsys.readouterr().err
    manifest = read_manifest(order("bsds500").folder)
    assert manifest is not None
    assert manifest.sources[0].verified_by == "the sha256 of what was first received"


def test_a_file_that_changed_since_its_first_use_is_refused(order, server):
    wanted = order("bsds500", "validation", published=False)
    get(wanted)
    server.files["/BSR_bsds500.tgz"] = tar({"BSR/BSDS500/data/images/train/1.jpg": jpeg(7)}, "w:gz")
    whole = replace(wanted, half="all")
    with pytest.raises(CotenantError, match="and the sha256 of what was first received is"):
        get(whole)
    manifest = read_manifest(wanted.folder)
    assert manifest is not None
    assert manifest.half == "validation"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>Please log in.</html>" * 30, "is no whole archive"),
        (tar({"BSR/README": b""}, "w:gz"), "lacks data/images/train, data/images/val, data/images/test"),
        (tar({"../evil": b""}, "w:gz"), "leads out of its folder"),
        (bsds500()["BSR_bsds500.tgz"][:-50], "is no whole archive"),
    ],
    ids=["page", "other", "evil", "cut"],
)
def test_an_unverified_archive_that_is_wrong_is_fetched_anew(order, server, content, reason):
    wanted = order("bsds500", published=False)
    whole = server.files["/BSR_bsds500.tgz"]
    server.files["/BSR_bsds500.tgz"] = content
    with pytest.raises(CotenantError, match=reason) as caught:
        get(wanted)
    assert "BSR_bsds500.tgz was removed: start again" in str(caught.value)
    assert read_manifest(wanted.folder) is None
    assert tree(wanted.root) == [".locks/bsds500"]
    assert not list(wanted.root.parent.rglob("*evil*"))
    server.files["/BSR_bsds500.tgz"] = whole
    get(wanted)
    assert wanted.folder.is_dir()


def test_a_verified_archive_is_not_thrown_away(order, server):
    wanted = order("bsds500")
    broken = replace(wanted.wanted, lay_out=lambda packed, folder: None)
    with pytest.raises(CotenantError, match=r"lacks .* and report it if they are"):
        get(replace(wanted, real=replace(wanted.real, halves={"all": broken})))
    assert tree(wanted.arriving) == ["BSR_bsds500.tgz", "BSR_bsds500.tgz.received.json"]


def test_a_gated_set_is_never_downloaded(order, server):
    for more in ({}, {"mirror": server.url()}):
        with pytest.raises(CotenantError) as caught:
            get(order("imagenet", **more))
        assert "imagenet is never downloaded" in str(caught.value)
        assert "Ask at https://image-net.org/download.php, then name the folder" in str(caught.value)
    assert server.requests == []
    assert not order().root.exists()


@pytest.mark.parametrize("place", ["", "/mnist"])
def test_the_mirror_is_tried_first(order, server, tmp_path, place):
    wanted = order(mirror=server.url("/mirror"))
    for path, content in list(server.files.items()):
        server.files[f"/mirror{place}{path}"] = content
    get(wanted)
    used = {path for path, _ in server.requests}
    assert not used & {f"/{archive.name}" for archive in wanted.wanted.archives}
    manifest = read_manifest(wanted.folder)
    assert manifest is not None
    assert all(one.source.startswith(server.url(f"/mirror{place}/")) for one in manifest.sources)


def test_a_mirror_that_lacks_it_is_passed_over(order, server):
    get(order(mirror=server.url("/mirror")))
    assert order().folder.is_dir()


def test_a_link_in_the_place_of_the_set_is_refused(order, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    order().root.mkdir()
    order().folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CotenantError, match="symbolic link"):
        get(order())
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_swap_leaves_a_set_at_every_moment(order, server, monkeypatch):
    ensure(order().root, FAKE, "small", processes=1)
    seen = []
    real = files._exchange

    def exchange(first, second):
        seen.append((read_manifest(first), read_manifest(second)))
        return real(first, second)

    monkeypatch.setattr(files, "_exchange", exchange)
    get(order())
    ((new, old),) = seen
    assert new is not None
    assert old is not None
    assert (new.kind, old.kind) == ("real", "fake")
