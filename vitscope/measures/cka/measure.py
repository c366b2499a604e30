"""CKA: the similarity of the feature maps of all pairs of cut points."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.cka.batches import LEAST_BATCH
from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The similarity of the feature maps of all pairs of cut points."""

    batch_size: int = setting(
        64,
        (
            "Images per estimate of the HSIC, of which the mean is taken. It divides `shard_size` "
            "where there are several shards; the last images that fill no batch are left out."
        ),
        minimum=LEAST_BATCH,
    )


class OfCka(Measure):
    """What CKA of one network and between two have in common: batches of images."""

    needs = "latents"
    in_parts = True
    seconds_per_gb = 0.7
    batch_setting = "analysis.cka.batch_size"

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return how many images an estimate of the HSIC is of: all, if they fill no batch."""
        wanted = study.section("cka", Settings).batch_size
        return {"batch_size": min(wanted, study.images(model))}

    def check(self, study: "Study") -> None:
        """Refuse batches whose bounds would depend on the shards, or of too few images."""
        wanted = study.section("cka", Settings).batch_size
        shard_size = study.analysis.shard_size
        for model in study.models_of(self.name):
            images = study.images(model)
            if images < LEAST_BATCH:
                raise VitscopeError(
                    f"{study.path}: models.{model} is measured on too few images for a figure of "
                    f"the kind '{self.name}': found {images}, allowed: {LEAST_BATCH} or more."
                )
            if study.shards(model) > 1 and shard_size % self.part(study, model, 0)["batch_size"]:
                raise VitscopeError(
                    f"{study.path}: analysis.cka.batch_size: found {wanted}, allowed: a divisor "
                    f"of analysis.shard_size, which is {shard_size}."
                )


class Cka(OfCka):
    """The similarity of the feature maps of all pairs of cut points."""

    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"cka": self.kind(tables=("blocks",))}


MEASURE = Cka()
