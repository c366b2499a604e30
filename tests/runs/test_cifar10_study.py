"""The study cifar10 on the real images: small networks of its families are trained and measured.

The archive is in the official layout, as users have it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.helpers.cifar import CLASSES
from tests.helpers.sources import open_path
from tests.runs.copies import REPOSITORY, Workflow, with_study
from tests.runs.test_golden_study import SMALL
from vitscope.claims.tables import CLAIMS
from vitscope.data.building import open_split_file
from vitscope.jobs.tables import find_table
from vitscope.networks.running.prediction_table import PREDICTIONS

pytestmark = pytest.mark.nightly

TRAINED, TESTED = 2000, 500
CONVOLUTIONS = {"block": "bottleneck", "blocks": [1, 1, 2, 2], "width": 8}
MSAS = CONVOLUTIONS | {"heads": [1, 2, 4, 8], "head_dim": 16, "window": 4}
ARCHS: dict[str, dict[str, Any]] = {
    "resnet_50": CONVOLUTIONS,
    "vit_ti": {"patch_size": 4, "embed_dim": 48, "depth": 4, "num_heads": 3, "qkv_bias": False},
    "alternet_50": MSAS | {"attention": [0, 0, 1, 1]},
    "cnn_50": MSAS | {"attention": [0, 0, 0, 0]},
}


@pytest.fixture(scope="module")
def study(cifar10_archive: Path) -> dict[str, Any]:
    """The study with small networks, few images, two epochs, and its figures as they are."""
    text = (REPOSITORY / "config" / "studies" / "cifar10.yaml").read_text(encoding="utf-8")
    # The study has another name here, and its results another place.
    settings: dict[str, Any] = yaml.safe_load(text.replace("results/cifar10/", "results/real/"))
    settings["data"]["cifar10"] |= {
        "source": {"kind": "cifar10", "path": str(cifar10_archive)},
        "splits": {
            "train": {"images": TRAINED, "seed": None},
            "test": {"images": TESTED, "seed": None},
        },
    }
    assert {*ARCHS} == {*settings["models"]}
    for name, model in settings["models"].items():
        model["arch"] = ARCHS[name]
    settings["analysis"] = SMALL | {
        "classification": {"images": TESTED},
        "landscape": {"points": 3, "rows_per_job": 3},
    }
    recipe = {"epochs": 2, "warmup_epochs": 1, "batch_size": 50, "learning_rate": 0.002}
    settings["training"] |= recipe
    return settings


@pytest.fixture(scope="module")
def run(study: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    workflow = with_study(tmp_path_factory.mktemp("cifar10"), "real", study)
    workflow.make("all", "--cores", "2", default="real")
    return workflow


def test_every_figure_is_of_the_real_images(
    run: Workflow, study: dict[str, Any], cifar10_archive: Path
) -> None:
    for name in study["figures"]:
        assert (run.root / f"figures/{name}.pdf").read_bytes().startswith(b"%PDF")
    for split, count in (("train", TRAINED), ("test", TESTED)):
        images = open_split_file(run.root / f"results/real/data/cifar10/{split}.safetensors")
        assert (len(images), [*images.classes]) == (count, [*CLASSES])
        samples = open_path("cifar10", cifar10_archive, split).samples(np.arange(count))
        for row, sample in enumerate(samples):
            assert images.labels[row] == sample.label
            pixels = np.asarray(sample.image).transpose(2, 0, 1)
            np.testing.assert_array_equal(images.images([row])[0], pixels)


def test_what_was_trained_is_what_is_measured(run: Workflow) -> None:
    """Accuracies come out by three ways: of the training, of the table, of each prediction."""
    results = run.root / "results" / "real"
    curves, fit = (
        find_table(name).read(results / "tables" / f"{name}.parquet")
        for name in ("learning_curves", "fit")
    )
    assert [*curves.groupby("model")["epoch"].agg(list)] == [[0, 1, 2]] * len(ARCHS)
    last = curves[curves["epoch"] == 2].set_index("model")
    # Chance finds one of ten; this is 3.4 standard deviations more.
    assert (last["test_accuracy"] > 0.145).all(), last
    # Predictions that know nothing have the larger one.
    assert last["test_loss"].between(1.5, np.log(10)).all(), last
    errors = fit[fit["metric"] == "error_percent"].set_index("model")
    assert (errors["images"] == TESTED).all()
    for model in ARCHS:
        predictions = PREDICTIONS.read(results / "predictions" / model / "test.parquet")
        assert len(predictions) == TESTED
        right = (predictions["prediction"] == predictions["label"]).sum()
        assert right == pytest.approx(TESTED * last["test_accuracy"][model])
        assert TESTED - right == pytest.approx(TESTED / 100 * errors["value"][model])


def test_every_table_counts_what_the_study_says(run: Workflow) -> None:
    tables = run.root / "results" / "real" / "tables"
    measured = {
        # A grid, and the cross of each of four other pairs of directions.
        "landscape": (2 * (3 * 3 + 4 * 5), ["loss", "nll"]),
        # One batch, at the warm-up and at the end.
        "hessian": (2 * 2, ["eigenvalue"]),
        "frequency_noise": (2 * 2, ["accuracy", "change"]),
        # Two corruptions, and the mean of both.
        "corruption_error": (4 * 3, ["clean_error", "error"]),
        "fit": (4 * 2, ["value"]),
        # Four blocks of a ViT, six of the others: each MSA, MLP or block is left out.
        "lesion": (8 + 6 + 6, ["clean_accuracy", "accuracy"]),
        # The same, and the stem before them; of the CNN, too.
        "feature_variance": (9 + 7 + 7 + 7, ["variance"]),
    }
    for name, (rows, columns) in measured.items():
        table = find_table(name).read(tables / f"{name}.parquet")
        assert len(table) == rows, name
        assert np.isfinite(table[columns]).all(axis=None), name
        shares = table[[column for column in columns if "accuracy" in column]]
        assert shares.isin([0, 0.25, 0.5, 0.75, 1]).all(axis=None), name
    assert (table["variance"] > 0).all()
    assert (table["images"] == SMALL["images"]).all()
    assert find_table("hessian").read(tables / "hessian.parquet")["converged"].all()
    claims = CLAIMS.read(tables / "claims.parquet")
    of_msas = claims[claims["claim"] == "msa_reduces_variance"].set_index("model")
    assert of_msas["measured_total"].to_dict() == {"vit_ti": 4, "alternet_50": 2}
