"""Robustness: accuracy and calibration on corrupted images."""

from dataclasses import dataclass
from typing import Literal, get_args

from vitscope.measures.measure import Case, FigureKind, Given, Measure, passes_of
from vitscope.settings.section import setting

Corruption = Literal[
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
]


@dataclass(frozen=True)
class Settings:
    """Accuracy and calibration on corrupted images."""

    images: int | None = setting(
        None, "How many images of the split are corrupted; null for all.", minimum=1
    )
    corruptions: list[Corruption] = setting(
        [*get_args(Corruption)], "The corruptions.", minItems=1, uniqueItems=True
    )
    severities: list[int] = setting(
        [1, 2, 3, 4, 5],
        "Their severities.",
        items={"minimum": 1, "maximum": 5},
        minItems=1,
        uniqueItems=True,
    )
    corruptions_per_job: int = setting(
        1,
        (
            "How many corruptions one job measures; results do not depend on it. One per job runs "
            "them in parallel on a cluster, but with small models most of a job is its start."
        ),
        minimum=1,
    )


def choose_corruptions(case: Case) -> Given:
    """Depend on the corruptions of a part; the first has images as they are besides."""
    corruptions = [case.settings.corruptions[step] for step in case.steps]
    return {"corruptions": corruptions, "clean": case.part == 0}


def count_views(case: Case) -> int:
    """Count a pass for each corruption and severity, and one for images as they are."""
    return len(case.steps) * len(case.settings.severities) + (case.part == 0)


MEASURE = Measure(
    needs="model",
    figures={"robustness": FigureKind(beside=("corruption_error",))},
    settings=Settings,
    arguments=choose_corruptions,
    takes=passes_of(count_views),
    shares=("corruptions", "corruptions_per_job"),
    reads=("corrupted",),
)
