"""What a measure costs: how often the network is run, on how many images, and what it keeps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    pass


# What stays in memory for each image of a batch; `Work` says what the words mean.
Keeps = Literal["pass", "units", "gradient", "product"]


@dataclass(frozen=True)
class Work:
    """Says what a part costs: the number of forward passes of single images, and memory.

    `batch` images are in memory at once. `keeps` says what stays in memory for each of them: what
    one layer needs ("pass"), what lesions use again ("units"), or what one backward pass
    ("gradient") or two ("product") need. `vectors` is the number of copies of the weights. With
    `most`, `passes` is an upper bound: fewer may suffice. `holds` is the number of images whose
    maps at all cut points are in memory.
    """

    passes: float
    batch: int
    keeps: Keeps = "pass"
    vectors: int = 0
    most: bool = False
    holds: int = 0


def work_for_images(
    views: float, wanted: int | None, there: int | None, batch: int, keeps: Keeps = "pass"
) -> Work | None:
    """Return the work for `views` passes of each image; None if no number of images is known yet.

    `wanted` is the number of images to measure, `there` the number that exist. The smaller of the
    known numbers is used.
    """
    known = [count for count in (wanted, there) if count is not None]
    return Work(min(known) * views, batch, keeps) if known else None
