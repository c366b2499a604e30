"""Trajectories through snapshots, against what training recorded."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.jobs.tables import find_table
from vitscope.measures.given import OnWeights
from vitscope.measures.trainings.compute import measure_trajectory, recorded, traced
from vitscope.networks.building.networks import parameter_names
from vitscope.networks.checkpoints.conversion import write_weights
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.trajectory import polar

MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
FOLDER = Path(__file__).parents[3] / "resources" / "checkpoints" / "mini"
SNAPSHOTS = ("init", "warmup", "end")


def written(folder: Path, moments: list[dict[str, np.ndarray]]) -> dict[str, TensorFile]:
    opened = {}
    for order, weights in enumerate(moments):
        path = folder / f"{order}.safetensors"
        write_weights(path, {name: torch.tensor(w) for name, w in weights.items()}, {})
        opened[f"moment {order}"] = TensorFile(path)
    return opened


def test_snapshots_give_the_trajectory_of_their_parameters(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    shapes = {"conv": (4, 3, 2, 2), "norm.mean": (5,), "bias": (7,), "scale": ()}
    moments = [
        {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        for _ in range(4)
    ]
    snapshots = written(tmp_path, moments)
    table = traced(snapshots, ["bias", "conv", "scale"], "moment 1")
    flat = [np.concatenate([m[k].ravel() for k in ("conv", "bias", "scale")]) for m in moments]
    pd.testing.assert_frame_equal(table[["radius", "angle"]], polar(len(flat), [flat]), rtol=1e-12)
    assert table["moment"].tolist() == list(snapshots)
    assert table["order"].tolist() == [0, 1, 2, 3]
    assert table["ends_warmup"].tolist() == [False, True, False, False]
    assert set(table["source"]) == {"snapshots"}
    # What training does not move by gradients makes no difference.
    moments[1]["norm.mean"] += 100
    again = traced(written(tmp_path, moments), ["bias", "conv", "scale"], "moment 1")
    pd.testing.assert_frame_equal(again, table)


def test_two_snapshots_are_no_trajectory(tmp_path: Path) -> None:
    snapshots = written(tmp_path, [{"w": np.ones(2)}, {"w": np.zeros(2)}])
    with pytest.raises(VitscopeError, match=r"needs 3 moments at least.*there are 2"):
        traced(snapshots, ["w"], None)


def history(radius: list[float | None], angle: list[float | None]) -> pd.DataFrame:
    columns = {"loss": 1.0, "learning_rate": 0.1, "test_accuracy": 0.5}
    epochs = range(1, len(radius) + 1)
    return pd.DataFrame({"epoch": epochs, "radius": radius, "angle": angle}).assign(**columns)


def test_a_record_begins_at_the_first_weights_and_is_in_order() -> None:
    shuffled = history([0.9, 0.4, 0.0], [0.2, 0.7, 0.0]).iloc[[2, 0, 1]]
    table = recorded(shuffled, "2", "history.parquet")
    assert table["moment"].tolist() == ["0", "1", "2", "3"]
    assert table["order"].tolist() == [0, 1, 2, 3]
    assert table["radius"].tolist() == [1, 0.9, 0.4, 0]
    assert table["angle"].tolist() == [0, 0.2, 0.7, 0]
    assert table["ends_warmup"].tolist() == [False, False, True, False]
    assert set(table["source"]) == {"history"}


@pytest.mark.parametrize("warmup", [None, "0", "9"])
def test_no_moment_ends_a_warmup_that_is_unknown_or_was_not(warmup: str | None) -> None:
    table = recorded(history([0.5, 0.0], [0.5, 0.0]), warmup, "history.parquet")
    assert not table["ends_warmup"].any()


def bundled(folder: Path, model: str) -> dict[str, TensorFile]:
    files = {}
    for name in SNAPSHOTS:
        write_weights(folder / name, load_file(FOLDER / model / f"{name}.safetensors"), {})
        files[name] = TensorFile(folder / name)
    return files


def test_a_job_takes_what_was_recorded_or_the_snapshots(tmp_path: Path) -> None:
    record = history([1.2, 0.5, 0.0], [0.3, 0.2, 0.0])
    table = measure_trajectory(OnWeights("vit", history=record), "1")
    expected = recorded(record, "1", "vit").assign(model="vit")
    pd.testing.assert_frame_equal(table, expected, check_exact=True)

    files = bundled(tmp_path, "vit")
    network = MINI.network("vit")
    given = OnWeights("vit", snapshots=[*files.values()])
    table = measure_trajectory(given, "warmup", SNAPSHOTS, network)
    expected = traced(files, parameter_names(network), "warmup").assign(model="vit")
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    find_table("trajectory").write(table, tmp_path / "table.parquet")


def test_a_history_without_a_trajectory_is_refused() -> None:
    with pytest.raises(VitscopeError, match=r"^h\.parquet records no trajectory: train with"):
        recorded(history([None, None], [None, None]), "1", "h.parquet")


@pytest.mark.parametrize("model", ["resnet", "vit"])
def test_bundled_histories_agree_with_bundled_snapshots(tmp_path: Path, model: str) -> None:
    parameters = parameter_names(MINI.network(model))
    found = traced(bundled(tmp_path, model), parameters, "warmup")
    warmup = str(MINI.recipe(model).warmup_epochs)
    read = find_table("training_history").read(FOLDER / model / "history.parquet")
    expected = recorded(read, warmup, model)
    expected = expected[expected["moment"].isin(["0", warmup, str(len(read))])]
    assert expected["ends_warmup"].tolist() == found["ends_warmup"].tolist() == [False, True, False]
    # The snapshots have half precision, with 11 bits; the errors of many weights cancel.
    np.testing.assert_allclose(found["radius"], expected["radius"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["angle"], expected["angle"], rtol=0, atol=1e-5)
