"""Position bias: what attention adds for the offset between two positions."""

from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure

if TYPE_CHECKING:
    from vitscope.settings.study import Study


class PositionBias(Measure):
    """The relative position biases of the layers of a network that attend."""

    needs = "network"

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"position_bias": self.kind()}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return that nothing is chosen."""
        return {}


MEASURE = PositionBias()
