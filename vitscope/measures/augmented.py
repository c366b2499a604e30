"""What measures of the loss have in common: a recipe, and a split of images to augment."""

from typing import TYPE_CHECKING

from vitscope.settings.schema import unknown

if TYPE_CHECKING:
    from vitscope.settings.study import Study


def check_augmented(study: "Study", table: str) -> None:
    """Refuse a model without a recipe, and a data set without images to augment."""
    split = study.analysis.augmented.split
    for model in study.models_of(table):
        study.recipe(model)
        splits, data = study.dataset_of(model).splits, study.models[model].data
        if split not in splits:
            at = f"analysis.augmented.split, for models.{model} on data.{data}"
            raise unknown(study.path, at, split, splits)
