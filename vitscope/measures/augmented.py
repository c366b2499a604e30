"""What measures of the loss have in common: what it is, and a split of images to augment."""

from math import ceil
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.measure import Measure
from vitscope.settings.schema import unknown

if TYPE_CHECKING:
    from vitscope.settings.study import Study


class OfLoss(Measure):
    """What is measured of the loss on augmented images, in steps that jobs share among them."""

    needs = "loss"
    in_parts = True

    def split(self, study: "Study") -> str:
        """Return the split whose images are augmented."""
        return study.analysis.augmented.split

    def steps(self, study: "Study") -> tuple[int, int]:
        """Return how many steps there are, and how many of them one job measures."""
        raise NotImplementedError

    def parts(self, study: "Study", model: str) -> int:
        """Return how many jobs share the steps among them."""
        steps, each = self.steps(study)
        return ceil(steps / each)

    def steps_of(self, study: "Study", part: int) -> range:
        """Return the steps that a part measures."""
        steps, each = self.steps(study)
        return range(steps)[part * each : (part + 1) * each]

    def check(self, study: "Study") -> None:
        """Refuse a loss of no known training, or without images to augment."""
        check_augmented(study, self.name)


def check_augmented(study: "Study", table: str, images: int | None = None) -> None:
    """Refuse a study that does not say what the loss is, or has no images to measure it on.

    `images` are how many are drawn, if they are not those of all measures of the loss.
    """
    augmented, asking = study.analysis.augmented, _asking(study, table)
    if asking and study.training is None and study.loss is None:
        raise VitscopeError(
            f"{study.path}: {asking} shows a loss, and nothing says of what training: add "
            f"`loss: {{weight_decay: ..., augment: none}}` for networks that were trained "
            f"elsewhere, or the key 'training'."
        )
    for model in study.models_of(table):
        splits, data = study.dataset_of(model).splits, study.models[model].data
        if augmented.split not in splits:
            at = f"analysis.augmented.split, for models.{model} on data.{data} in {asking}"
            raise unknown(study.path, at, augmented.split, splits)
        there, wanted = splits[augmented.split].images, images or augmented.images
        if study.clean and there is not None and wanted > there:
            key = f"{table}.images" if images else "augmented.images"
            raise VitscopeError(
                f"{study.path}: analysis.{key}, for models.{model} in {asking}: found {wanted}, "
                f"allowed: at most {there}, the images of data.{data}.splits.{augmented.split}: "
                f"without augmentation each is taken once."
            )


def _asking(study: "Study", table: str) -> str:
    """Return the first figure that is drawn from a table, as messages call it."""
    asking = study.figures_of(table)
    return next((f"figures.{name}" for name, each in study.figures.items() if each in asking), "")
