"""The table of sources: where each file of the real sets is published, how large it is, and who recorded which digest.

Digests and binding sizes are facts that others recorded, named in each row; none was made up. A row without one says
so with None: such a file is compared with what was received first (`archive.py`).
"""

from __future__ import annotations

from cotenant.datasets.archive import Archive, Checksum

TFDS = "tensorflow-datasets 4.9.10"
TORCHTEXT = "torchtext 0.18.0"
TORCHVISION = "torchvision 0.29.2"

_MNIST = ("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/")
_COCO = ("http://images.cocodataset.org/",)
_WIKITEXT = ("https://wikitext.smerity.com/", "https://s3.amazonaws.com/research.metamind.io/wikitext/")


def _sha256(bases: tuple[str, ...], path: str, size_bytes: int, digest: str) -> Archive:
    """A row whose size and sha256 tensorflow-datasets records."""
    name = path.rpartition("/")[2]
    return Archive(name, tuple(base + path for base in bases), size_bytes, True, Checksum("sha256", digest, TFDS))


def _md5(bases: tuple[str, ...], name: str, about_bytes: int, digest: str, recorded_by: str) -> Archive:
    """A row whose md5 is recorded, and whose size is known only about."""
    return Archive(name, tuple(base + name for base in bases), about_bytes, False, Checksum("md5", digest, recorded_by))


ARCHIVES: dict[str, Archive] = {
    row.name: row
    for row in (
        _sha256(
            _MNIST,
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        _sha256(
            _MNIST,
            "train-labels-idx1-ubyte.gz",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        _sha256(
            _MNIST,
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        _sha256(
            _MNIST,
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        # Nobody is known to have recorded a digest of it.
        Archive(
            "BSR_bsds500.tgz",
            (
                "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/BSR_bsds500.tgz",
                "http://www.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/BSR_bsds500.tgz",
            ),
            71_000_000,
            False,
            None,
        ),
        _sha256(
            _COCO,
            "zips/train2017.zip",
            19_336_861_798,
            "69a8bb58ea5f8f99d24875f21416de2e9ded3178e903f1f7603e283b9e06d929",
        ),
        _sha256(
            _COCO,
            "zips/val2017.zip",
            815_585_330,
            "4f7e2ccb2866ec5041993c9cf2a952bbed69647b115d0f74da7ce8f4bef82f05",
        ),
        _sha256(
            _COCO,
            "annotations/annotations_trainval2017.zip",
            252_907_541,
            "113a836d90195ee1f884e704da6304dfaaecff1f023f49b6ca93c4aaae470268",
        ),
        # ImageNet's have no URL: a person asks for them at https://image-net.org/download.php.
        _sha256(
            (),
            "ILSVRC2012_img_train.tar",
            147_897_477_120,
            "b08200a27a8e34218a0e58fde36b0fe8f73bc377f4acea2d91602057c3ca45bb",
        ),
        _sha256(
            (),
            "ILSVRC2012_img_val.tar",
            6_744_924_160,
            "c7e06a6c0baccf06d8dbeb6577d71efff84673a5dbdd50633ab44f8ea0456ae0",
        ),
        _md5((), "ILSVRC2012_devkit_t12.tar.gz", 2_600_000, "fa75699e90414af021442c21a62c3abf", TORCHVISION),
        _sha256(
            ("https://files.grouplens.org/datasets/movielens/",),
            "ml-20m.zip",
            198_702_078,
            "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        ),
        _sha256(
            ("https://www.statmt.org/wmt13/", "http://www.statmt.org/wmt13/"),
            "training-parallel-europarl-v7.tgz",
            657_632_379,
            "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        ),
        _sha256(
            ("https://www.statmt.org/wmt13/", "http://www.statmt.org/wmt13/"),
            "training-parallel-commoncrawl.tgz",
            918_311_367,
            "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        ),
        _sha256(
            ("https://data.statmt.org/wmt16/translation-task/", "http://data.statmt.org/wmt16/translation-task/"),
            "training-parallel-nc-v11.tgz",
            75_178_032,
            "cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a",
        ),
        # WMT19's, which holds the test sets of the years before, too.
        _sha256(
            ("https://data.statmt.org/wmt19/translation-task/", "http://data.statmt.org/wmt19/translation-task/"),
            "dev.tgz",
            38_654_961,
            "7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
        ),
        _md5(_WIKITEXT, "wikitext-2-v1.zip", 4_500_000, "542ccefacc6c27f945fb54453812b3cd", TORCHTEXT),
        _md5(_WIKITEXT, "wikitext-103-v1.zip", 190_000_000, "9ddaacaf6af0710eda8c456decff7832", TORCHTEXT),
        _sha256(
            ("https://data.keithito.com/data/speech/",),
            "LJSpeech-1.1.tar.bz2",
            2_748_572_632,
            "be1a30453f28eb8dd26af4101ae40cbf2c50413b1bb21936cbcdc6fae3de8aa5",
        ),
        _sha256(
            ("https://rajpurkar.github.io/SQuAD-explorer/dataset/",),
            "train-v1.1.json",
            30_288_272,
            "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
        ),
        _sha256(
            ("https://rajpurkar.github.io/SQuAD-explorer/dataset/",),
            "dev-v1.1.json",
            4_854_279,
            "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
        ),
    )
}


def archives(*names: str) -> tuple[Archive, ...]:
    """Return the rows of these files."""
    return tuple(ARCHIVES[name] for name in names)
