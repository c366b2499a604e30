"""Shape against texture: what a model goes by where the two disagree."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, quoted
from vitscope.measures.classification.measure import Settings as Classification
from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.schema import unknown
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """What a model goes by where shape and texture are of two classes."""

    split: str = setting(
        "conflict",
        "The split of the data set, whose images say `shape` and `texture`; `shapes32` has one.",
    )
    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


class ShapeTexture(Measure):
    """Decisions by shape and by texture, on images where the two are of different classes."""

    needs = "predictions"
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"shape_texture": self.kind()}

    def split(self, study: "Study") -> str:
        """Return the split whose images say their shape and their texture."""
        return study.section("shape_texture", Settings).split

    def predicted(self, study: "Study") -> int | None:
        """Return how many images are classified."""
        return study.section("shape_texture", Settings).images

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return how intervals are made."""
        return asdict(study.analysis.bootstrap)

    def check(self, study: "Study") -> None:
        """Refuse a split that a data set lacks, or one that is classified in two ways."""
        ours = study.section("shape_texture", Settings)
        theirs = study.section("classification", Classification)
        for model in study.models_of("shape_texture"):
            splits = study.dataset_of(model).splits
            if ours.split not in splits:
                data = study.models[model].data
                at = f"analysis.shape_texture.split, for models.{model} on data.{data}"
                raise unknown(study.path, at, ours.split, splits)
        if ours.split == study.analysis.split and ours.images != theirs.images:
            raise VitscopeError(
                f"{study.path}: analysis.shape_texture.images: found {quoted(ours.images)}, "
                f"allowed: the same as analysis.classification.images, which is "
                f"{quoted(theirs.images)}: both are of the split '{ours.split}'."
            )


MEASURE = ShapeTexture()
