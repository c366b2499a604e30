"""Learning curves, and trajectories through snapshots, against what training recorded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.jobs.tables import find_table
from vitscope.measures import registry
from vitscope.measures.given import OnWeights
from vitscope.measures.trainings.compute import (
    measure_learning_curves,
    measure_trajectory,
    recorded_trajectory,
    trajectory_of_snapshots,
)
from vitscope.measures.trainings.measure import LEARNING_CURVES_TABLE, RECORDED
from vitscope.networks.building.networks import parameter_names
from vitscope.networks.checkpoints.conversion import write_weights
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.history import HISTORY
from vitscope.training.trajectory import polar_trajectory

MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
FOLDER = Path(__file__).parents[3] / "resources" / "checkpoints" / "mini"
SNAPSHOTS = ("init", "warmup", "end")
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
    assert read["snapshots"].fillna("null").tolist() == ["init, epoch_0", "null", "warmup", "end"]
    assert read.loc[0, [*RECORDED]].isna().all()
    for name in RECORDED:
        expected = HISTORY_OF_THREE[name].to_numpy(np.float64)
        np.testing.assert_array_equal(read[name].iloc[1:], expected)


def test_snapshots_are_where_names_and_the_recipe_say() -> None:
    vit = MINI.models["vit"]
    names = ("init", "warmup", "epoch_5", "epoch_12", "of_mine", "epoch_x")
    models = {"vit": replace(vit, snapshots={name: {} for name in names})}
    part = registry.declared("learning_curves").measuring
    # The model's own recipe has two epochs of warm-up, the recipe of the study has one.
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


def written(folder: Path, moments: dict[str, dict[str, Tensor]]) -> dict[str, TensorFile]:
    for name, weights in moments.items():
        write_weights(folder / name, weights, {})
    return {name: TensorFile(folder / name) for name in moments}


def test_snapshots_give_the_trajectory_of_their_parameters(tmp_path: Path) -> None:
    torch.manual_seed(2)
    shapes = {"conv": (4, 3, 2, 2), "norm.mean": (5,), "bias": (7,), "scale": ()}
    moments = {
        moment: {name: torch.randn(shape) for name, shape in shapes.items()}
        for moment in ("start", "warm", "later", "end")
    }
    snapshots = written(tmp_path, moments)
    trained = ["bias", "conv", "scale"]
    table = trajectory_of_snapshots(snapshots, trained, "warm")
    flat = [torch.cat([each[k].ravel() for k in trained]).numpy() for each in moments.values()]
    pd.testing.assert_frame_equal(
        table[["radius", "angle"]], polar_trajectory(len(flat), [flat]), rtol=1e-12
    )
    assert table["moment"].tolist() == list(snapshots)
    assert table["order"].tolist() == [0, 1, 2, 3]
    assert table["ends_warmup"].tolist() == [False, True, False, False]
    assert set(table["source"]) == {"snapshots"}
    # Tensors that no gradient moves in training make no difference.
    moments["warm"]["norm.mean"] += 100
    again = trajectory_of_snapshots(written(tmp_path, moments), trained, "warm")
    pd.testing.assert_frame_equal(again, table)


def test_two_snapshots_are_no_trajectory(tmp_path: Path) -> None:
    snapshots = written(tmp_path, {"init": {"w": torch.ones(2)}, "end": {"w": torch.zeros(2)}})
    with pytest.raises(VitscopeError, match=r"needs 3 moments at least.*there are 2"):
        trajectory_of_snapshots(snapshots, ["w"], None)


def history(radius: list[float | None], angle: list[float | None]) -> pd.DataFrame:
    columns = {"loss": 1.0, "learning_rate": 0.1, "test_accuracy": 0.5}
    epochs = range(1, len(radius) + 1)
    return pd.DataFrame({"epoch": epochs, "radius": radius, "angle": angle}).assign(**columns)


def test_a_record_begins_at_the_first_weights_and_is_in_order() -> None:
    shuffled = history([0.9, 0.4, 0.0], [0.2, 0.7, 0.0]).iloc[[2, 0, 1]]
    table = recorded_trajectory(shuffled, "2", "history.parquet")
    assert table["moment"].tolist() == ["0", "1", "2", "3"]
    assert table["order"].tolist() == [0, 1, 2, 3]
    assert table["radius"].tolist() == [1, 0.9, 0.4, 0]
    assert table["angle"].tolist() == [0, 0.2, 0.7, 0]
    assert table["ends_warmup"].tolist() == [False, False, True, False]
    assert set(table["source"]) == {"history"}


@pytest.mark.parametrize("warmup", [None, "0", "9"])
def test_no_moment_ends_a_warmup_that_is_unknown_or_was_not(warmup: str | None) -> None:
    table = recorded_trajectory(history([0.5, 0.0], [0.5, 0.0]), warmup, "history.parquet")
    assert not table["ends_warmup"].any()


def bundled(folder: Path, model: str) -> dict[str, TensorFile]:
    files = {name: FOLDER / model / f"{name}.safetensors" for name in SNAPSHOTS}
    return written(folder, {name: load_file(file) for name, file in files.items()})


def test_a_job_takes_what_was_recorded_or_the_snapshots(tmp_path: Path) -> None:
    record = history([1.2, 0.5, 0.0], [0.3, 0.2, 0.0])
    table = measure_trajectory(OnWeights("vit", history=record), "1")
    expected = recorded_trajectory(record, "1", "vit").assign(model="vit")
    pd.testing.assert_frame_equal(table, expected, check_exact=True)

    files = bundled(tmp_path, "vit")
    network = MINI.network("vit")
    given = OnWeights("vit", snapshots=[*files.values()])
    table = measure_trajectory(given, "warmup", SNAPSHOTS, network)
    expected = trajectory_of_snapshots(files, parameter_names(network), "warmup").assign(
        model="vit"
    )
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    find_table("trajectory").write(table, tmp_path / "table.parquet")


def test_a_history_without_a_trajectory_is_refused() -> None:
    with pytest.raises(VitscopeError, match=r"^h\.parquet records no trajectory: train with"):
        recorded_trajectory(history([None, None], [None, None]), "1", "h.parquet")


@pytest.mark.parametrize("model", ["resnet", "vit"])
def test_bundled_histories_agree_with_bundled_snapshots(tmp_path: Path, model: str) -> None:
    parameters = parameter_names(MINI.network(model))
    found = trajectory_of_snapshots(bundled(tmp_path, model), parameters, "warmup")
    warmup = str(MINI.recipe(model).warmup_epochs)
    read = find_table("training_history").read(FOLDER / model / "history.parquet")
    expected = recorded_trajectory(read, warmup, model)
    expected = expected[expected["moment"].isin(["0", warmup, str(len(read))])]
    assert expected["ends_warmup"].tolist() == found["ends_warmup"].tolist() == [False, True, False]
    # The snapshots have half precision, with 11 bits; the errors of many weights cancel.
    np.testing.assert_allclose(found["radius"], expected["radius"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["angle"], expected["angle"], rtol=0, atol=1e-5)
