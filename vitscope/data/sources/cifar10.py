"""CIFAR-10: the official archive, downloaded or given."""

from functools import partial
from typing import Any

from vitscope.data.sources._cifar import Cifar, FileLayout, read_binary_cifar, read_pickled_cifar

SOURCE: dict[str, Any] = {
    "meaning": "the official archive of CIFAR-10, downloaded and checked, or a `path` to it",
    "shared": ("path", "url"),
    "images": {"train": 50_000, "test": 10_000},
    "archive": {
        # The binary version holds no pickles.
        "url": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "files": {
            "cifar-10-python.tar.gz": {
                "md5": "c58f30108f718f92721af3b95e74349a",
                "size": 170_498_071,
            },
            "cifar-10-binary.tar.gz": {
                "md5": "c32a1d4ab5d03f1284b67883e8d87530",
                "size": 170_052_171,
            },
        },
    },
}

LAYOUTS = {
    "cifar-10-python.tar.gz": FileLayout(
        folder="cifar-10-batches-py",
        train=tuple(f"data_batch_{i}" for i in range(1, 6)),
        test=("test_batch",),
        names="batches.meta",
        read=partial(read_pickled_cifar, names_key=b"label_names", labels_key=b"labels"),
        has_pickles=True,
    ),
    "cifar-10-binary.tar.gz": FileLayout(
        folder="cifar-10-batches-bin",
        train=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
        test=("test_batch.bin",),
        names="batches.meta.txt",
        read=partial(read_binary_cifar, label_bytes=1),
    ),
}


class Cifar10(Cifar):
    layouts = LAYOUTS
    published = SOURCE["archive"]["files"]


open_split = Cifar10
