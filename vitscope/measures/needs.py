"""What measures need: what jobs make for them, and which function opens it.

Each need is said once, here. Snakemake takes the files that jobs write, a notebook what it has in
memory; one job opens either by the function that the need names, and measures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitscope.measures.measure import Case

# What a job is about: names as rules have them.
About = dict[str, str]


@dataclass(frozen=True)
class Made:
    """What a job makes for a measure of a model.

    `about` are the names that it is made for, as the case says them. What is made for `each` of
    several, as the snapshots of a training, is a list.
    """

    job: str
    about: tuple[str, ...] = ("model",)
    each: str = ""

    def names(self, case: "Case") -> About | list[About]:
        """Return what the job is about; one for each of several."""
        names = {key: str(getattr(case, key)) for key in self.about}
        if not self.each:
            return names
        return [{**names, self.each: each} for each in getattr(case, f"{self.each}s")]


@dataclass(frozen=True)
class Named:
    """A file that a study may name for a model, under a key."""

    key: str


Input = Made | Named

CHECKPOINT, BLOCKS = Made("convert_checkpoint"), Made("list_blocks")
IMAGES = Made("build_split", ("dataset", "split"))
PREDICTIONS = Made("predict", ("model", "split"))
# What a measure may read besides, by the names that it gives in `reads`.
READABLE = {
    "blocks": BLOCKS,
    "predictions": PREDICTIONS,
    "corrupted": Made("corrupt_images", ("dataset",), each="corruption"),
    "alike": Made("augment_images", ("model", "alike")),
}


@dataclass(frozen=True)
class Need:
    """What measures of a kind are given.

    `opens` is the function of jobs that opens the `inputs`. `values` are what a job depends on
    beside the measure's own settings, as the case says them. `torch` tells whether it takes torch,
    `runs` whether it runs the network; `loads` are the inputs that are in memory as a whole.
    """

    opens: str = ""
    inputs: Mapping[str, Input] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    torch: bool = True
    runs: bool = False
    loads: tuple[str, ...] = ()
    # Whether it is always measured in parts.
    in_parts: bool = False
    # Whether it is made from images at all, and from those of the training, at moments of it.
    of_images: bool = True
    of_training: bool = False
    # Whether it is about what a model says of classes, unless the measure says another thing.
    of_classes: bool = False


OPENING = "vitscope.jobs.opening"
NEEDS = {
    # Feature maps on disk.
    "latents": Need(
        f"{OPENING}:open_latents",
        {"latents": Made("extract_latents", ("model", "part"))},
        values=("first_image",),
        torch=False,
        in_parts=True,
    ),
    # What a model says of images.
    "predictions": Need(
        f"{OPENING}:open_predictions",
        {"predictions": PREDICTIONS, "images": IMAGES},
        values=("model", "by_label"),
        torch=False,
        of_classes=True,
    ),
    # The model itself, on images.
    "model": Need(
        f"{OPENING}:open_model",
        {"checkpoint": CHECKPOINT, "blocks": BLOCKS, "images": IMAGES},
        values=("model", "network", "images_at_once", "part", "device"),
        runs=True,
        of_classes=True,
    ),
    # Its loss, on augmented images of the training.
    "loss": Need(
        f"{OPENING}:open_loss",
        {
            "checkpoint": Made("convert_checkpoint", ("model", "snapshot")),
            "blocks": BLOCKS,
            "images": Made("augment_images"),
        },
        values=("model", "snapshot", "network", "part", "device"),
        runs=True,
        in_parts=True,
        of_training=True,
        of_classes=True,
    ),
    # Its network with its weights, and no images.
    "network": Need(
        f"{OPENING}:open_network_alone",
        {"checkpoint": CHECKPOINT},
        values=("model", "network"),
        loads=("checkpoint",),
        of_images=False,
    ),
    # Its weights in training: recorded, or at several moments.
    "weights": Need(
        f"{OPENING}:open_weights",
        {
            "history": Named("history"),
            "snapshots": Made("convert_checkpoint", each="snapshot"),
        },
        values=("model",),
        loads=("snapshots",),
        of_images=False,
    ),
    # The parts of another measure.
    "parts": Need(torch=False, in_parts=True),
}
