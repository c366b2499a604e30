"""Hessian: its largest eigenvalues, batch by batch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from vitscope.errors import VitscopeError
from vitscope.measures.augmented import OfLoss
from vitscope.measures.measure import FigureKind, Given, Work
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study

# The fewest vectors that Lanczos keeps: LARGEST_BASIS in lanczos.py, which imports torch.
LEAST_VECTORS = 64
# What a product with the Hessian takes, in forward passes.
PASSES_OF_A_PRODUCT = 6


@dataclass(frozen=True)
class Settings:
    """The largest eigenvalues of the Hessian of the training loss."""

    batches: int = setting(
        16, "How many batches of augmented images have a spectrum each.", minimum=1
    )
    batch_size: int = setting(64, "Images per batch.", minimum=1)
    top: int = setting(
        5, "How many eigenvalues of each batch, the largest by magnitude.", minimum=1
    )
    batches_per_job: int = setting(
        1, "How many batches one job measures; results do not depend on it.", minimum=1
    )
    tolerance: float = setting(
        0.001,
        (
            "Largest residual |Hv - av| of an eigenvalue, over the largest magnitude, at which it "
            "counts as converged."
        ),
        exclusiveMinimum=0,
    )
    iterations: int = setting(
        200,
        "Most steps of Lanczos; `converged` is false of an eigenvalue that needs more.",
        minimum=10,
    )
    l2: bool = setting(True, "Add the weight decay term to the loss.")
    density_probes: int = setting(
        2, "Random vectors per batch of the full spectral density.", minimum=1
    )
    density_steps: int = setting(40, "Steps of Lanczos from each of them.", minimum=5)


class OfHessian(OfLoss):
    """What is measured of the Hessian of the training loss, on some batches for each job."""

    # Whether products end where the result has converged.
    converges: ClassVar[bool] = False
    batch_setting = "analysis.hessian.batch_size"

    def steps(self, study: "Study") -> tuple[int, int]:
        """Return how many batches there are, and how many of them one job measures."""
        settings = study.section("hessian", Settings)
        return settings.batches, settings.batches_per_job

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return which batches of augmented images are measured, and the weight decay."""
        settings = study.section("hessian", Settings)
        return {
            "batches": list(self.steps_of(study, part)),
            "batch_size": settings.batch_size,
            "weight_decay": study.weight_decay(model) if settings.l2 else 0.0,
        }

    def products(self, settings: Settings) -> tuple[float, int]:
        """Return the products with the Hessian of each batch at most, and the vectors kept."""
        raise NotImplementedError

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count the passes of as many products as there may be."""
        settings = study.section("hessian", Settings)
        batches = len(self.steps_of(study, part))
        products, vectors = self.products(settings)
        count = batches * settings.batch_size * products * PASSES_OF_A_PRODUCT
        return Work(count, settings.batch_size, "product", vectors, most=self.converges)

    def check(self, study: "Study") -> None:
        """Refuse what all of the loss do, and more batches than there are augmented images."""
        super().check(study)
        settings, images = study.section("hessian", Settings), study.analysis.augmented.images
        shown = self.name in study.tables()
        if shown and settings.batches * settings.batch_size > images:
            raise VitscopeError(
                f"{study.path}: analysis.hessian.batches: found {settings.batches} of "
                f"{settings.batch_size} images each, allowed: at most "
                f"{images // settings.batch_size}: analysis.augmented.images is {images}."
            )


class Hessian(OfHessian):
    """The largest eigenvalues."""

    converges = True

    settings = Settings

    def fitting(self, images: int) -> Given:
        """Return batches that are no more than there are images for."""
        usual = Settings()
        size = min(usual.batch_size, images)
        return {"batch_size": size, "batches": min(usual.batches, images // size)}

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        published = frozenset({"panel", "eigenvalue", "density"})
        return {"hessian": self.kind(published=published, snapshots=True)}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return the batches, the weight decay, how many eigenvalues are found, how precisely."""
        settings = study.section("hessian", Settings)
        keys = ("top", "tolerance", "iterations")
        return super().part(study, model, part) | {key: getattr(settings, key) for key in keys}

    def products(self, settings: Settings) -> tuple[float, int]:
        """Return the products with the Hessian of each batch at most, and the vectors kept."""
        return settings.iterations, max(LEAST_VECTORS, 3 * settings.top)


MEASURE = Hessian()
