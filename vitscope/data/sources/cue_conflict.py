"""The cue-conflict stimuli of Geirhos et al. (2019), CC BY 4.0: shape and texture disagree."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vitscope.data.archives import checked_members, opened_tar, read_member
from vitscope.data.class_numbers import imagenet_synsets
from vitscope.data.source import Sample, Source, no_such_split
from vitscope.data.split import UNKNOWN_LABEL
from vitscope.errors import VitscopeError
from vitscope.files.images import decode_image
from vitscope.package_data import IMAGENET_CATEGORIES

SOURCE: dict[str, Any] = {
    "meaning": "the cue-conflict stimuli of Geirhos et al. (2019), downloaded and checked, or a "
    "`path` to an archive of the authors' repository",
    "shared": ("path", "url"),
    "archive": {
        "url": "https://github.com/rgeirhos/texture-vs-shape/archive/"
        "ccd0c01d42c0a8a834e90ec141e7f24fa915dc23.tar.gz",
        "files": {"ccd0c01d42c0a8a834e90ec141e7f24fa915dc23.tar.gz": {}},
    },
}

SPLIT = "conflict"
FOLDER = "stimuli/style-transfer-preprocessed-512/"
# A digest of the stimuli, since the archive is packed anew at each download: the output of
# `sha256sum */*.png | sha256sum` in FOLDER, with names in byte order.
DIGEST = "cc5d62247c2b2eb4bdf11db894390acb92603702fa8ba53714bdff1f5a14e681"
# The file of published points: the decisions of people and networks on these images.
DECISIONS = "cue_conflict.csv"
_NAME = re.compile(r"([a-z]+)/\1\d+-([a-z]+)\d+\.png")


def read_cue_conflict_categories() -> dict[str, list[int]]:
    """Return the 16 categories in order, each with its ImageNet classes."""
    number = {synset: each for each, synset in enumerate(imagenet_synsets())}
    with IMAGENET_CATEGORIES.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    return {row["category"]: [number[each] for each in row["synsets"].split()] for row in rows}


class CueConflict(Source):
    """The stimuli, sorted by name; neither cue is the true class, so labels are unknown."""

    extra = ("shape", "texture")

    def __init__(self, source: Mapping[str, Any], split: str, file: Path) -> None:
        if split != SPLIT:
            raise no_such_split("cue_conflict", split, [SPLIT])
        self._files = _read_stimuli(file)
        categories = read_cue_conflict_categories()
        self.classes, self.outputs = [*categories], [*categories.values()]
        number = {name: each for each, name in enumerate(self.classes)}
        cues = (_NAME.fullmatch(name) for name in self._files)
        self._cues = [tuple(number[each] for each in found.groups()) for found in cues if found]
        self.provenance = {
            "source": "cue_conflict",
            "source_listing_sha256": DIGEST,
            "decisions": DECISIONS,
        }

    def __len__(self) -> int:
        return len(self._files)

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        names = [*self._files]
        for index in indices:
            image = decode_image(io.BytesIO(self._files[names[index]]), names[index])
            yield Sample(image, UNKNOWN_LABEL, self._cues[index])


def _read_stimuli(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with opened_tar(path) as tar:
        for member in checked_members(tar, path):
            _, folder, name = member.name.rpartition(FOLDER)
            if folder and _NAME.fullmatch(name):
                found[name] = read_member(tar, member)
    lines = [f"{sha256(found[name]).hexdigest()}  {name}\n" for name in sorted(found)]
    if sha256("".join(lines).encode()).hexdigest() != DIGEST:
        raise VitscopeError(
            f"{path} does not hold the 1,280 cue-conflict stimuli as they were published in "
            f"{FOLDER[:-1]}: get the archive again, or leave out `path`."
        )
    return {name: found[name] for name in sorted(found)}


open_split = CueConflict
