"""Patch filters: what the first layer of a network multiplies the pixels of an image by."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The filters of the first layer, and their principal components."""

    filters: int = setting(128, "How many filters at most, from the first.", minimum=1)
    components: int = setting(28, "How many principal components at most.", minimum=1)


class PatchFilters(Measure):
    """The filters of the first layer of a network, and their principal components."""

    needs = "network"
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"patch_filters": self.kind(), "patch_components": self.kind("components")}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return how many of them there are."""
        return asdict(study.section("patch_filters", Settings))


MEASURE = PatchFilters()
