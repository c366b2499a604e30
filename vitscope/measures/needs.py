"""The inputs of measures: which jobs make them, and which function opens them.

Each need is declared only here. Inputs are files that jobs wrote, or objects in the memory of a
notebook; in both cases, the job that measures opens them by the function that the need names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class MadeInput:
    """Describes an input of a measure that a job makes.

    `about` names the wildcards of the job, whose values come from the case. With `each`, the input
    is a list with one element for each value of a further wildcard, such as the snapshots of a
    model. The input is the first output of the job, unless `output` names another. If it is
    `of_others`, it is a list with one element for each model of a pair or triple but the first. A
    measure whose setting `unless_zero` is 0 does without it.
    """

    job: str
    about: tuple[str, ...] = ("model",)
    each: str = ""
    output: str = ""
    of_others: bool = False
    unless_zero: str = ""


# An input that a job makes, or else a key that models have in a study and that may name a file.
Input = MadeInput | str

CHECKPOINT = MadeInput("convert_checkpoint")
BLOCKS = MadeInput("convert_checkpoint", output="blocks")
IMAGES = MadeInput("build_split", ("dataset", "split"))
PREDICTIONS = MadeInput("predict", ("model", "split"), output="predictions")
# Further inputs of a measure, by their names in its `reads`.
READABLE = {
    "blocks": BLOCKS,
    "predictions": PREDICTIONS,
    "corrupted": MadeInput("corrupt_images", ("dataset", "part")),
    "alike": MadeInput("augment_images", ("model", "alike")),
    "drawn_from": IMAGES,
}


@dataclass(frozen=True)
class Need:
    """Describes the inputs of a group of measures.

    `opens` names a function of vitscope/jobs/opening.py that opens the `inputs`. `values` names the
    keys of `OF_CASE` in measure.py that a result depends on, besides the settings of its measure.
    `torch` tells whether a job needs torch, `runs` whether it runs the network. `loads` names the
    inputs that are loaded into memory as a whole.
    """

    opens: str = ""
    inputs: Mapping[str, Input] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    torch: bool = True
    runs: bool = False
    loads: tuple[str, ...] = ()
    # Whether jobs always measure parts.
    in_parts: bool = False
    # Whether images are measured at all.
    of_images: bool = True
    # Whether training images are measured, at several points during training.
    of_training: bool = False
    # Whether the measures of the group are about classes, unless a measure says otherwise.
    of_classes: bool = False


NEEDS = {
    "latents": Need(
        "open_latents",
        {"latents": MadeInput("extract_latents", ("model", "part"))},
        values=("first_image",),
        torch=False,
        in_parts=True,
    ),
    "predictions": Need(
        "open_predictions",
        {"predictions": PREDICTIONS, "images": IMAGES},
        values=("model", "by_label"),
        torch=False,
        of_classes=True,
    ),
    "model": Need(
        "open_model",
        {"checkpoint": CHECKPOINT, "blocks": BLOCKS, "images": IMAGES},
        values=("model", "network", "images_at_once", "part", "device"),
        runs=True,
        of_classes=True,
    ),
    "loss": Need(
        "open_loss",
        {
            "checkpoint": MadeInput("convert_checkpoint", ("model", "snapshot")),
            "blocks": BLOCKS,
            "images": MadeInput("augment_images"),
        },
        values=("model", "snapshot", "network", "part", "device"),
        runs=True,
        in_parts=True,
        of_training=True,
        of_classes=True,
    ),
    "line": Need(
        "open_line",
        {
            "checkpoint": CHECKPOINT,
            "other_checkpoints": MadeInput("convert_checkpoint", of_others=True),
            "blocks": BLOCKS,
            "images": IMAGES,
            "augmented": MadeInput("augment_images", unless_zero="reset_images"),
        },
        values=("model", "others", "network", "other_networks", "images_at_once", "part", "device"),
        runs=True,
        loads=("other_checkpoints",),
        of_classes=True,
    ),
    "network": Need(
        "open_network_alone",
        {"checkpoint": CHECKPOINT},
        values=("model", "network"),
        loads=("checkpoint",),
        of_images=False,
    ),
    "weights": Need(
        "open_weights",
        {"history": "history", "snapshots": MadeInput("convert_checkpoint", each="snapshot")},
        values=("model",),
        loads=("snapshots",),
        of_images=False,
    ),
    "parts": Need(torch=False, in_parts=True),
}
