from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from vitscope.data.split import Split
from vitscope.files.strict_yaml import load_yaml
from vitscope.jobs.tables import find_table
from vitscope.jobs.training import TRAINED_ON, augmentation_recipe_of_job
from vitscope.measures import registry
from vitscope.networks.checkpoints.conversion import load_converted_model
from vitscope.scopes.scope import Scope, look
from vitscope.settings.keys import Model
from vitscope.settings.study import Study

# Measures of a training, or of images that show two classes or that people saw: they take a study.
OF_A_STUDY = ("fit", "shape_texture", "beside_people", "trajectory", "learning_curves")
# Measures of what some networks, or their trainings, have and others have not.
OF_SOME_NETWORKS = ("position_bias", "position_similarity", "loss_terms")


def in_memory(*, attends: bool = True) -> list[str]:
    """Return the tables that one network in memory has, with attention or without."""
    declared = {name: registry.declared(name) for name in registry.names()}
    names = [
        name
        for name, measure in declared.items()
        if measure.models == 1 and (attends or not measure.reads_attention)
    ]
    return ["blocks", *(name for name in names if name not in OF_A_STUDY)]


def of_the_loss(made: "Made", model: str) -> Scope:
    """Look at a model with the training images of a study, augmented as in its training."""
    recipe = augmentation_recipe_of_job(made.study, model)
    augment = {key: value for key, value in recipe.items() if key not in TRAINED_ON}
    decay = made.study.weight_decay(model)
    return made.looked_at(model, "train", loss={"weight_decay": decay, "augment": augment})


def look_at_split(network: nn.Module, images: Split, entry: Model, **more: Any) -> Scope:
    """Look at a network with all images of a split, normalized as its entry in a study says."""
    return look(
        network,
        np.array(images.images(slice(None))),
        np.array(images.labels),
        entry.mean,
        entry.std,
        class_names=images.classes,
        **more,
    )


class Made:
    """The results of a study below a folder."""

    def __init__(self, study: Study, results: Path) -> None:
        self.study, self.results = study, results / study.name

    def split(self, model: str, name: str) -> Split:
        return Split(self.results / "data" / self.study.models[model].data / f"{name}.safetensors")

    def table(self, name: str, model: str) -> pd.DataFrame:
        """Return the table of a model that jobs have made."""
        return find_table(name).read(self.results / name / f"{model}.parquet")

    def looked_at(self, model: str, split: str = "test", **more: Any) -> Scope:
        """Look at a model, with the images of a split and the settings of the study."""
        entry, images = self.study.models[model], self.split(model, split)
        network = load_converted_model(
            self.results / "checkpoints" / f"{model}.safetensors", self.study.network(model)
        )
        analysis = load_yaml(self.study.path)["analysis"]
        analysis["images"] = min(self.study.images(model), len(images))
        return look_at_split(network, images, entry, name=model, analysis=analysis, **more)
