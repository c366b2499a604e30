from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.measures.given import OnWeights
from vitscope.measures.trainings.compute import measure_learning_curves
from vitscope.measures.trainings.measure import LEARNING_CURVES_TABLE, RECORDED
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.history import HISTORY

MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
FOLDER = Path(__file__).parents[3] / "resources" / "checkpoints" / "mini"
HISTORY_OF_THREE = pd.DataFrame(
    [(1, 3.0, 0.1, 2.5, 0.25), (2, 2.0, 0.2, 1.5, 0.5), (3, 1.0, 0.05, 1.25, 0.75)],
    columns=["epoch", "loss", "learning_rate", "test_loss", "test_accuracy"],
).assign(training_accuracy=None, radius=None, angle=None)


def test_each_epoch_has_what_was_recorded_and_its_snapshots(tmp_path: Path) -> None:
    HISTORY.write(HISTORY_OF_THREE, tmp_path / "history")
    shuffled = HISTORY.read(tmp_path / "history").sample(frac=1, random_state=1)
    taken = {"init": 0, "epoch_0": 0, "warmup": 2, "epoch_100": 100}
    table = measure_learning_curves(OnWeights("vit", history=shuffled), taken)
    LEARNING_CURVES_TABLE.write(table, tmp_path / "table")
    read = LEARNING_CURVES_TABLE.read(tmp_path / "table")
    assert set(read["model"]) == {"vit"}
    assert read["epoch"].tolist() == [0, 1, 2, 3]
    assert read["snapshots"].tolist()[0::2] == ["init, epoch_0", "warmup"]
    assert read["snapshots"].isna().tolist() == [False, True, False, False]
    assert read["snapshots"].iloc[3] == "end"
    assert read.loc[0, [*RECORDED]].isna().all()
    for name in RECORDED:
        expected = HISTORY_OF_THREE[name].to_numpy(np.float64)
        np.testing.assert_array_equal(read[name].iloc[1:], expected)


def test_snapshots_are_where_names_and_the_recipe_say() -> None:
    vit = MINI.models["vit"]
    names = ("init", "warmup", "epoch_5", "epoch_12", "of_mine", "epoch_x")
    models = {"vit": replace(vit, snapshots={name: {} for name in names})}
    part = registry.declared("learning_curves").measuring
    # The warm-up of the model's own recipe has two epochs, that of the study one.
    known = {"init": 0, "warmup": 2, "epoch_5": 5, "epoch_12": 12}
    assert part(replace(MINI, models=models), "vit", 0) == {"snapshots": known}
    del known["warmup"]
    elsewhere = replace(MINI, models=models, training=None)
    assert part(elsewhere, "vit", 0) == {"snapshots": known}


def test_a_model_without_a_history_is_refused() -> None:
    models = {"vit": replace(MINI.models["vit"], history=None)}
    figures = {"training": replace(MINI.figures["training"], models=["vit"])}
    with pytest.raises(
        VitscopeError, match=r"models.vit.history: found none, allowed: the table that train_model"
    ):
        registry.declared("learning_curves").check(replace(MINI, models=models, figures=figures))
