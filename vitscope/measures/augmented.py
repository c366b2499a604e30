"""A loss is measured on augmented images: refuse a study that lacks what that takes."""

from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, unknown

if TYPE_CHECKING:
    from vitscope.settings.study import Study


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
