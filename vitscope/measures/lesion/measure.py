"""Lesions: the accuracy without one residual branch."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure, Work, passes
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study

# What a pass without one unit takes, of a whole one, since what lies before the unit is not
# computed again; measured are 0.2 to 0.6.
SHARE_OF_LESION = 0.25


@dataclass(frozen=True)
class Settings:
    """The accuracy without one residual branch."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


class Lesion(Measure):
    """The accuracy without each residual branch."""

    needs = "model"
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        published = frozenset({"index", "normalized_depth", "kind", "change"})
        return {"lesion": self.kind(tables=("blocks",), published=published)}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return which images are classified, and how intervals are made."""
        images = study.section("lesion", Settings).images
        chosen = {"images": images, "seed": study.analysis.seed}
        return {"chosen": chosen, "bootstrap": asdict(study.analysis.bootstrap)}

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count a pass of the whole model, and a share of one without each unit."""
        views = 1 + SHARE_OF_LESION * cut_points
        wanted = study.section("lesion", Settings).images
        return passes(views, wanted, images, study.analysis.batch_size, "units")


MEASURE = Lesion()
