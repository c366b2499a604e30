from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from tests.helpers.refusals import refusal
from tests.helpers.splits import CENTER, SPREAD, shapes
from tests.helpers.studies import recorded_recipe
from vitscope.buildup.rule import network_of
from vitscope.buildup.table import (
    RESULT,
    digest_of_step,
    refuse_missing_buildup_weights,
    score_buildup_network,
)
from vitscope.errors import VitscopeError
from vitscope.files.tables import read_metadata
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.jobs import buildups
from vitscope.jobs.job import Resources
from vitscope.networks.building.networks import drawn_network, empty_network
from vitscope.networks.checkpoints.conversion import write_weights
from vitscope.package_data import ROOT
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

ARCH = {"block": "basic", "blocks": [1, 1, 1, 2], "heads": [1, 1, 1, 1], "head_dim": 4, "width": 4}
BASELINE: dict[str, Any] = {"family": "alternet", "arch": ARCH, "classes": 10}
BASELINE |= {"image_size": 32, "mean": CENTER, "std": SPREAD}
TRIED = network_of(BASELINE, (0, 0, 0, 1))
WHERE = "own.yaml: buildups.grown.weights"
FILE = ROOT / "tests" / "expected" / "buildup_fig12a.csv"


def write_drawn(path: Path, network: dict[str, Any], dtype: torch.dtype) -> Path:
    weights = drawn_network(network).state_dict()
    kept = {k: t.to(dtype) if t.is_floating_point() else t for k, t in weights.items()}
    write_weights(path, kept, {})
    return path


def test_images_are_counted_that_get_their_class(tmp_path: Path) -> None:
    images = shapes(tmp_path / "test.safetensors", 30)
    path = write_drawn(tmp_path / "step_1.safetensors", TRIED, torch.float16)
    found = score_buildup_network(path, TRIED, images, WHERE, 7, torch.device("cpu"))
    network = drawn_network(TRIED).half().float().eval()
    with torch.inference_mode():
        (batch,) = images.batches(range(30), 30, CENTER, SPREAD)
        right = network(batch).argmax(1).numpy() == images.labels
    parameters = sum(parameter.numel() for parameter in network.parameters())
    assert found.to_dict("records") == [
        {"parameters": parameters, "images": 30, "correct": int(right.sum())}
    ]


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    images = shapes(tmp_path / "test.safetensors", 4)
    path = write_drawn(
        tmp_path / "step_1.safetensors", network_of(BASELINE, (0,) * 4), torch.float32
    )
    assert refusal(score_buildup_network, path, TRIED, images, WHERE, 4, torch.device("cpu")) == (
        f"{WHERE}: there are no weights of the network that is tried next, with [0, 0, 0, 1] MSA "
        f"blocks in its stages ({path} are of another): leave the key out, so that it is trained."
    )


def test_weights_that_are_missing_are_refused() -> None:
    with pytest.raises(VitscopeError, match="there are no weights of the network that is tried"):
        refuse_missing_buildup_weights(TRIED, WHERE)


def test_what_is_bundled_is_what_is_tried() -> None:
    """All steps of the default study, trained by its recipe, and no more."""
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    baseline = buildups.settings_of_buildup(study, "fig12a")["baseline"]
    table = pd.read_csv(FILE)
    files = buildups.bundled_buildup_steps(study, "fig12a")
    for attention, path in zip(table["attention"], files, strict=True):
        network = network_of(baseline, [int(count) for count in attention.split(", ")])
        wanted = empty_network(network).state_dict()
        file = TensorFile(path)
        found = {name: file.shape(name) for name in file.names}
        assert found == {name: tuple(tensor.shape) for name, tensor in wanted.items()}
        assert recorded_recipe(file.metadata) == asdict(study.recipe_of_steps("fig12a"))
    assert not buildups.is_trained(study, "fig12a")


def test_bundled_weights_are_measured_as_far_as_the_build_up_goes(tmp_path: Path) -> None:
    shapes(tmp_path / "test.safetensors", 30)
    settings = {"baseline": BASELINE, "blocks": [1, 1, 1, 2], "patience": 1, "steps": 1}
    values = {"where": WHERE, "batch_size": 7, "device": "cpu", "settings": settings}
    # No step tries the last.
    tried = [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 1)]
    weights = [
        write_drawn(tmp_path / f"step_{n}.safetensors", network_of(BASELINE, each), torch.float32)
        for n, each in enumerate(tried)
    ]
    inputs: dict[str, Any] = {"images": str(tmp_path / "test.safetensors"), "weights": weights}
    outputs = {"result": str(tmp_path / "bundled.parquet")}
    buildups.measure_bundled_job(inputs, outputs, values, Resources())
    found = RESULT.read(outputs["result"])
    assert found["images"].tolist() == [30, 30]
    digests = read_metadata(outputs["result"])
    assert [digests[digest_of_step(n)] for n in range(2)] == [*map(sha256_of, weights[:2])]

    inputs["weights"] = weights[:1]
    message = refusal(buildups.measure_bundled_job, inputs, outputs, values, Resources())
    assert message.startswith(f"{WHERE}: there are no weights of the network that is tried next")
