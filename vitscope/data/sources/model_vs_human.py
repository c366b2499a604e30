"""Sixteen sets of changed images that Geirhos et al. (2021) showed to people: model-vs-human."""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from vitscope.data.archives import checked_members, opened_tar, read_member
from vitscope.data.shown_images import ONLY_CONDITION, read_shown_conditions, read_shown_images
from vitscope.data.source import Sample, Source, no_such_split
from vitscope.data.sources.cue_conflict import read_cue_conflict_categories
from vitscope.errors import VitscopeError
from vitscope.files.images import decode_image

SOURCE: dict[str, Any] = {
    "meaning": "one of sixteen sets of changed images that Geirhos et al. (2021) showed to people, "
    "in the folder or archive at `path`",
    "shared": ("path",),
    "keys": {
        "set": {
            "enum": [
                "colour",
                "contrast",
                "high-pass",
                "low-pass",
                "phase-scrambling",
                "power-equalisation",
                "false-colour",
                "rotation",
                "eidolonI",
                "eidolonII",
                "eidolonIII",
                "uniform-noise",
                "sketch",
                "stylized",
                "edge",
                "silhouette",
            ],
            "description": "Which of the sets of images that people were shown.",
        },
    },
    "required": ("path", "set"),
}

SPLIT = "test"
# The metadata key for the set, by which a measure finds what people took its images for.
SHOWN_SET = "shown_set"
# Sets whose images are called edge/bear/bear4.png; in the others, names say condition and category,
# as dnn/session-1/0580_cop_dnn_c05_bicycle_10_n03792782_10129.png.
IN_FOLDERS = ("edge", "silhouette")
_NAME = re.compile(r"\d+_[a-z]+_dnn_([^_]+)_([a-z]+)_\d+_(.+)\.png")

# What a name says: condition, category, and which image it is.
_Shown = tuple[str, str, str]


class ModelVsHuman(Source):
    """The images of a set, in the order of the published decisions of people."""

    extra = ("condition",)

    def __init__(self, source: Mapping[str, Any], split: str, file: Path) -> None:
        if split != SPLIT:
            raise no_such_split("model_vs_human", split, [SPLIT])
        name = source["set"]
        self._files = _read_images_of_set(file, name)
        categories = read_cue_conflict_categories()
        self.classes, self.outputs = [*categories], [*categories.values()]
        conditions = read_shown_conditions(name)["condition"].tolist()
        self._numbers = [
            (self.classes.index(category), conditions.index(condition))
            for condition, category, _ in self._files
        ]
        digest = sha256()
        for content in self._files.values():
            digest.update(sha256(content).digest())
        self.provenance = {
            "source": f"model_vs_human, {name}",
            "source_sha256": digest.hexdigest(),
            SHOWN_SET: name,
        }

    def __len__(self) -> int:
        return len(self._files)

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        shown = [*self._files]
        for index in indices:
            (label, condition), named = self._numbers[index], " ".join(shown[index])
            image = decode_image(io.BytesIO(self._files[shown[index]]), named)
            yield Sample(image, label, (condition,))


def _read_images_of_set(path: Path, name: str) -> dict[_Shown, bytes]:
    """Return the content of all images of a set, in the order in which decisions are published.

    Refuse images that people were not shown, images that are there twice, and a set with gaps.
    """
    table = read_shown_images(name)[["condition", "category", "image"]]
    wanted = dict.fromkeys(table.itertuples(index=False, name=None), b"")
    advice = f"give {name}.tar.gz as model-vs-human publishes it, or the folder in it."
    found: dict[_Shown, PurePosixPath] = {}
    for file, read in _png_files(path):
        shown = _read_name(file, name)
        if shown not in wanted or _is_of_other_set(file, name):
            raise VitscopeError(
                f"{path} holds '{file}', which is none of the {len(wanted)} images of the set "
                f"'{name}' that people were shown: {advice}"
            )
        if shown in found:
            raise VitscopeError(
                f"{path} holds an image of the set '{name}' twice, as '{found[shown]}' and as "
                f"'{file}': {advice}"
            )
        found[shown], wanted[shown] = file, read()
    if missing := [" ".join(shown) for shown in wanted if shown not in found]:
        raise VitscopeError(
            f"{path} lacks {len(missing)} of the {len(wanted)} images of the set '{name}' that "
            f"people were shown, as '{missing[0]}': {advice}"
        )
    return wanted


def _png_files(path: Path) -> Iterator[tuple[PurePosixPath, Callable[[], bytes]]]:
    """Yield each visible PNG of a folder or a tar archive, with a function that reads it."""
    if path.is_dir():
        for each in sorted(path.rglob("*.png")):
            inside = PurePosixPath(path.resolve().name, each.relative_to(path).as_posix())
            if not each.name.startswith("."):
                yield inside, each.read_bytes
        return
    with opened_tar(path) as tar:
        for member in checked_members(tar, path):
            inside = PurePosixPath(member.name)
            if member.isfile() and inside.suffix == ".png" and not inside.name.startswith("."):
                yield inside, partial(read_member, tar, member)


def _read_name(file: PurePosixPath, name: str) -> _Shown | None:
    if name in IN_FOLDERS:
        return ONLY_CONDITION, file.parent.name, file.stem
    found = _NAME.fullmatch(file.name)
    return (found[1], found[2], found[3]) if found else None


def _is_of_other_set(file: PurePosixPath, name: str) -> bool:
    """Tell sets by their folders, too: images of both sets in folders have the same names."""
    return bool({*file.parts} & ({*SOURCE["keys"]["set"]["enum"]} - {name}))


open_split = ModelVsHuman
