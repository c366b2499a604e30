"""CIFAR-100: the official archive, downloaded or given."""

from functools import partial
from typing import Any

from vitscope.data.sources._cifar import Cifar, FileLayout, read_binary_cifar, read_pickled_cifar

SOURCE: dict[str, Any] = {
    "meaning": "the official archive of CIFAR-100, downloaded and checked, or a `path` to it",
    "shared": ("path", "url"),
    "images": {"train": 50_000, "test": 10_000},
    "archive": {
        # The binary version holds no pickles.
        "url": "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "files": {
            "cifar-100-python.tar.gz": {
                "md5": "eb9058c3a382ffc7106e4002c42a8d85",
                "size": 169_001_437,
            },
            "cifar-100-binary.tar.gz": {
                "md5": "03b5dce01913d631647c71ecec9e9cb8",
                "size": 168_513_733,
            },
        },
    },
}

LAYOUTS = {
    "cifar-100-python.tar.gz": FileLayout(
        folder="cifar-100-python",
        train=("train",),
        test=("test",),
        names="meta",
        read=partial(read_pickled_cifar, names_key=b"fine_label_names", labels_key=b"fine_labels"),
        has_pickles=True,
    ),
    "cifar-100-binary.tar.gz": FileLayout(
        folder="cifar-100-binary",
        train=("train.bin",),
        test=("test.bin",),
        names="fine_label_names.txt",
        # The coarse label comes before the fine one.
        read=partial(read_binary_cifar, label_bytes=2),
    ),
}


class Cifar100(Cifar):
    layouts = LAYOUTS
    published = SOURCE["archive"]["files"]


open_split = Cifar100
