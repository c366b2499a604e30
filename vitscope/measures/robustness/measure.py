"""Robustness: accuracy and calibration on corrupted images."""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Literal, get_args

from vitscope.measures.measure import FigureKind, Given, Measure, Work, passes
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study

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
            "How many corruptions one job measures; results do not depend on it. On a cluster one "
            "each runs them side by side, small models spend most of a job on its start."
        ),
        minimum=1,
    )


class Robustness(Measure):
    """Accuracy and calibration on images as they are and on corrupted ones."""

    needs = "model"
    in_parts = True
    reads = ("corrupted",)
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"robustness": self.kind(tables=("corruption_error",))}

    def corrupted(self, study: "Study") -> Given:
        """Return how many images are corrupted, and at which severities."""
        settings = study.section("robustness", Settings)
        return {"images": settings.images, "severities": settings.severities}

    def parts(self, study: "Study", model: str) -> int:
        """Return how many jobs share the corruptions among them."""
        settings = study.section("robustness", Settings)
        return ceil(len(settings.corruptions) / settings.corruptions_per_job)

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return the corruptions of a part; the first has images as they are besides."""
        settings = study.section("robustness", Settings)
        first = part * settings.corruptions_per_job
        corruptions = settings.corruptions[first : first + settings.corruptions_per_job]
        return {"corruptions": corruptions, "clean": part == 0}

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count a pass for each corruption and severity, and one for images as they are."""
        settings = study.section("robustness", Settings)
        given = self.part(study, model, part)
        views = len(given["corruptions"]) * len(settings.severities) + given["clean"]
        return passes(views, settings.images, images, study.analysis.batch_size)


MEASURE = Robustness()
