"""Attention rollout: what the output looks at, through all attention of a network."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from vitscope.measures.measure import FigureKind, Given, Measure, Work, passes
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """What the output looks at, as attention rollout has it."""

    images: int = setting(3, "How many images are shown, the first of those measured.", minimum=1)
    heads: Literal["mean", "max", "min"] = setting(
        "mean", "What is taken of the heads of an attention, for each query and key."
    )


class AttentionRollout(Measure):
    """Attention multiplied through the blocks, for a few images."""

    needs = "model"
    reads_attention = True
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"attention_rollout": self.kind()}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return which images are shown, and how heads are put together."""
        settings = asdict(study.section("attention_rollout", Settings))
        chosen = {"shown": settings["images"], "images": study.images(model)}
        return {"heads": settings["heads"], "chosen": chosen | {"seed": study.analysis.seed}}

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count a pass of each image that is shown, and the products of attention."""
        return passes(2, study.section("attention_rollout", Settings).images, images, 1)


MEASURE = AttentionRollout()
