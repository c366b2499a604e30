"""The density of all eigenvalues of the Hessian, batch by batch."""

from typing import TYPE_CHECKING

from vitscope.measures.hessian.measure import OfHessian, Settings
from vitscope.measures.measure import FigureKind, Given

if TYPE_CHECKING:
    from vitscope.settings.study import Study


class HessianDensity(OfHessian):
    """The density of all eigenvalues; its settings are those of the largest ones."""

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"hessian_density": self.kind(snapshots=True)}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return the batches, the weight decay, and how the density is estimated."""
        settings = study.section("hessian", Settings)
        probing = {"probes": settings.density_probes, "steps": settings.density_steps}
        return super().part(study, model, part) | probing

    def products(self, settings: Settings) -> tuple[float, int]:
        """Return the products with the Hessian of each batch, and the vectors kept."""
        return settings.density_probes * settings.density_steps, settings.density_steps


MEASURE = HessianDensity()
