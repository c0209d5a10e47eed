"""The layout of each real set, and its tasks, which read it."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from cotenant.bench.images import class_folders, images_below
from cotenant.datasets.dataset import read_manifest
from cotenant.datasets.obtain import obtain
from cotenant.datasets.request import SetRequest
from cotenant.datasets.sets import NAMES, find_dataset
from cotenant.datasets.sets.mnist import read_idx
from cotenant.datasets.sets.wmt16 import words_of
from datasets.miniature import CONTENTS, miniature
from tasks.loading import main_of

SPLITS = {
    "mnist": {"train": 6, "t10k": 4},
    "bsds500": {"train": 2, "val": 2, "test": 2},
    "coco": {"train2017": 2, "val2017": 2},
    "imagenet": {"train": 6, "val": 3},
    "ml_20m": {"ratings": 3},
    "wikitext": {"train": 9 * 14, "valid": 2 * 14, "test": 14},
    "wikitext_103": {"train": 9 * 14, "valid": 2 * 14, "test": 14},
    "wmt16": {"train": 6, "newstest2014": 2},
}
SMALLER = {
    "mnist": {"t10k": 4},
    "bsds500": {"val": 2},
    "coco": {"val2017": 2},
    "imagenet": {"val": 3},
    "wikitext": {"valid": 28},
    "wikitext_103": {"valid": 28},
    "wmt16": {"newstest2013": 2, "newstest2014": 2},
}


@pytest.fixture
def standing(tmp_path):
    """Return a function that gets a set from local archives and returns its folder."""

    def get(name: str, half: str = "all") -> Path:
        dataset, contents = miniature(name, lambda path: f"file://{tmp_path}/none{path}")
        archives = tmp_path / "archives" / name
        archives.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            (archives / path[1:]).write_bytes(content)
        root = tmp_path / half
        obtain(SetRequest(root, dataset, "small", half, local=tmp_path / "archives"))
        return root / dataset.folder

    return get


def test_every_set_is_tested():
    assert set(SPLITS) == set(CONTENTS) == set(NAMES)
    assert set(SMALLER) == {name for name in NAMES if len(find_dataset(name).halves) == 2}


@pytest.mark.parametrize("name", SPLITS)
def test_a_real_set_and_its_smaller_half(standing, name):
    folder = standing(name)
    manifest = read_manifest(folder)
    assert (manifest.name, manifest.kind, manifest.half, manifest.splits) == (name, "real", "all", SPLITS[name])
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert (manifest.files, manifest.bytes) == (len(files), sum(path.stat().st_size for path in files))
    contents = CONTENTS[name]()
    assert {source.file: source.sha256 for source in manifest.sources} == {
        file: hashlib.sha256(content).hexdigest() for file, content in contents.items()
    }
    assert not [path for path in folder.rglob("*") if path.is_symlink() or path.name == ".raw"]
    if name not in SMALLER:
        return
    folder = standing(name, "validation")
    manifest = read_manifest(folder)
    assert (manifest.half, manifest.splits) == ("validation", SMALLER[name])
    links = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink()}
    assert links == set(find_dataset(name).halves["validation"].links)
    for link in links:
        assert (folder / link).exists()
        assert not Path((folder / link).readlink()).is_absolute()


def test_the_table_of_sources():
    datasets = map(find_dataset, NAMES)
    used = {archive for dataset in datasets for half in dataset.halves.values() for archive in half.archives}
    assert len(used) == 18
    assert [row.name for row in used if row.digest is None] == ["BSR_bsds500.tgz"]
    for row in used:
        assert "/" not in row.name
        assert all(url.startswith(("https://", "http://")) and url.endswith(f"/{row.name}") for url in row.urls)
        assert bool(row.urls) == (not row.name.startswith("ILSVRC"))
        assert (
            row.digest is None
            or len(bytes.fromhex(row.digest)) == {"md5": 16, "sha256": 32}["sha256" if row.exact else "md5"]
        )
        assert bool(row.recorded_by) == (row.digest is not None)


@pytest.mark.parametrize("half", ["all", "validation"])
def test_pictures_are_read(standing, half):
    images = read_idx(standing("mnist", half) / "train-images-idx3-ubyte")
    assert images.shape == ((6, 28, 28) if half == "all" else (4, 28, 28))
    assert len(images_below(standing("bsds500", half) / "data" / "images" / "train", "")) == 2
    found = class_folders(standing("imagenet", half) / "train", "")
    assert list(found.classes) == ["n01440764", "n01443537"]
    # The development kit's labels are 2, 1, 2, and its class 2 is the first by name.
    assert found.labels.tolist() == ([0, 0, 0, 1, 1, 1] if half == "all" else [0, 0, 1])


@pytest.mark.parametrize("half", ["all", "validation"])
@pytest.mark.filterwarnings("ignore:The image decoding:DeprecationWarning")
def test_coco_is_read(standing, half):
    ssd = main_of("object_detection/single_stage_detector")
    folder = standing("coco", half)
    data = ssd.Coco(folder / "annotations" / "instances_train2017.json", folder / "train2017", "")
    image, boxes, labels = data[0]
    assert len(data) == 2
    assert (image.shape, boxes.shape, labels.tolist()) == ((3, 300, 300), (1, 4), [1])


def test_ml_20m_is_read(standing):
    recom = main_of("recommendation/neural_collaborative_filtering")
    user, item = recom.read_ratings(standing("ml_20m") / "ratings.csv")
    assert (user.tolist(), item.tolist()) == ([0, 0, 1], [0, 1, 0])


def test_wikitext_is_read(standing):
    wlm = main_of("natural_language_processing/word_language_model")
    for half, words in (("all", 9 * 14), ("validation", 28)):
        for name in ("wikitext", "wikitext_103"):
            assert len(wlm.read_words(standing(name, half) / "wiki.train.tokens", 100)) == words


@pytest.mark.parametrize("half", ["all", "validation"])
def test_wmt16_is_read(standing, half):
    translator = main_of("natural_language_processing/rnn_translator")
    folder = standing("wmt16", half)
    run = SimpleNamespace(read=lambda reader, *parts: reader(folder.joinpath(*parts)))
    english, german = translator.read_corpus(run, 32_320)
    pairs = 6 if half == "all" else 2
    assert len(english[2]) == len(german[2]) == pairs
    assert english[2].tolist()[:2] == [9, 4]
    # The vocabulary has room for every word of a small text.
    assert translator.UNK not in english[0]


def test_wmt16s_words(standing):
    folder = standing("wmt16")
    assert words_of("The cat sat, didn't it?") == ["The", "cat", "sat", ",", "didn", "'", "t", "it", "?"]
    train = (folder / "train.tok.clean.bpe.32000.de").read_text("utf-8").split("\n")
    assert train[:2] == ["Die Katze saß , oder ?", "Sie war groß ."]
    test = (folder / "newstest2014.tok.bpe.32000.en").read_text("utf-8")
    assert test == "A cat & a dog .\nYes .\n"
    vocabulary = (folder / "vocab.bpe.32000").read_text("utf-8").split()
    assert len(set(vocabulary)) == len(vocabulary)
    assert vocabulary[0] == ","
