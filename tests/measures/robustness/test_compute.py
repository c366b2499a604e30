from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from tests.helpers.splits import CENTER, SPREAD, built, on_model, shapes
from vitscope.corruptions import CORRUPTIONS
from vitscope.corruptions.corrupted_images import (
    CorruptedImages,
    build_corrupted,
    corrupted_batches,
)
from vitscope.corruptions.kinds import corrupt
from vitscope.data.split import Split, normalize
from vitscope.jobs.tables import find_table
from vitscope.measures import registry
from vitscope.measures.columns import SCORES
from vitscope.measures.given import Parts
from vitscope.measures.robustness.compute import measure_robustness
from vitscope.measures.robustness.measure import ROBUSTNESS_PART
from vitscope.measures.robustness.scores import (
    alexnet_errors,
    merge_corruption_error,
    merge_robustness,
)
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

IMAGES, SEVERITIES = 30, [1, 3, 5]
# One of each group; tests of corruptions have all of them.
SOME = ["gaussian_noise", "defocus_blur", "fog", "contrast"]
LOADED = (7, CENTER, SPREAD)


def corrupt_by(
    names: list[str],
    split: Split,
    folder: Path,
    images: int | None = None,
    severities: Sequence[int] = (5,),
) -> list[CorruptedImages]:
    for name in names:
        build_corrupted(split, images, name, [*severities], 0, folder / name)
    return [CorruptedImages(folder / name) for name in names]


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return shapes(tmp_path_factory.mktemp("data") / "test.safetensors", 50)


@pytest.fixture(scope="module")
def corrupted(tmp_path_factory: pytest.TempPathFactory, split: Split) -> list[CorruptedImages]:
    return corrupt_by(SOME, split, tmp_path_factory.mktemp("corrupted"), IMAGES, SEVERITIES)


def linear() -> nn.Module:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10, bias=False))
    nn.init.normal_(network[1].weight, std=1 / 30)
    return network


def test_grey_images_are_corrupted_too(tmp_path: Path) -> None:
    source = {"kind": "shapes32", "seed": 0}
    grey = built(tmp_path / "grey", source, images=8, channels=1)
    network = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32, 10))
    given = on_model(network, grey, corrupted=corrupt_by(SOME, grey, tmp_path))
    given = replace(given, settings=given.settings | {"mean": [0.5], "std": [0.2]})
    table = measure_robustness(given, SOME, clean=True)
    assert table["corruption"].tolist() == ["none", *SOME]


def test_wrong_labels_are_noticed_on_images_as_they_are(tmp_path: Path) -> None:
    images = shapes(tmp_path / "images", 200)
    corrupted = corrupt_by(["fog"], images, tmp_path)
    for clean in (True, False):
        given = on_model(linear(), images, corrupted=corrupted)
        measure_robustness(given, ["fog"], clean)
        assert len(given.warnings) == clean
        assert all("no better than chance" in warning for warning in given.warnings)


def test_views_show_the_same_images(split: Split, corrupted: list[CorruptedImages]) -> None:
    rows = corrupted[0].rows
    assert all(each.rows.tolist() == rows.tolist() for each in corrupted)
    assert [each.corruption for each in corrupted] == SOME
    for each, severity in product(corrupted, SEVERITIES):
        found = torch.cat([*corrupted_batches(each, severity, *LOADED)])
        ours = corrupt(split.images(rows), each.corruption, severity, rows)
        assert torch.equal(found, normalize(ours, *LOADED[1:]))


def test_a_job_scores_images_as_they_are_and_then_every_view(
    split: Split, corrupted: list[CorruptedImages], tmp_path: Path
) -> None:
    given = on_model(linear(), split, corrupted=corrupted[:2])
    table = measure_robustness(given, SOME[:2], clean=True)
    ROBUSTNESS_PART.write(table, tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(
        ROBUSTNESS_PART.read(tmp_path / "table.parquet"),
        table[[*ROBUSTNESS_PART.columns]],
        check_dtype=False,
    )
    rows = corrupted[0].rows
    views = [("none", 0, split.images(rows))]
    for name, each in zip(SOME, corrupted[:2], strict=False):
        views += [(name, severity, each.images(severity)) for severity in SEVERITIES]
    labels = torch.from_numpy(split.labels[rows])
    for row, (name, severity, images) in zip(table.itertuples(), views, strict=True):
        assert (row.corruption, row.severity, row.images) == (name, severity, IMAGES)
        with torch.inference_mode():
            logits = linear()(normalize(images, *LOADED[1:])).double()
        right = (logits.argmax(1) == labels).double().mean()
        assert row.accuracy == pytest.approx(float(right), abs=1e-12)
        np.testing.assert_array_equal(row.right, logits.argmax(1) == labels)
        nll = nn.functional.cross_entropy(logits, labels)
        assert row.nll == pytest.approx(float(nll), rel=1e-6)
        assert 0 <= row.ece <= 1
        shares = logits.softmax(1)
        brier = (shares - nn.functional.one_hot(labels, 10)).square().sum(1).mean()
        assert row.brier == pytest.approx(float(brier), rel=1e-6)
        five = (logits.topk(5).indices == labels[:, None]).any(1).double().mean()
        assert row.top5 == pytest.approx(float(five), abs=1e-12)
        assert row.frequency_90 == pytest.approx(float((shares.amax(1) > 0.9).double().mean()))
    assert {*SCORES} <= {*find_table("robustness").columns}
    without = measure_robustness(given, SOME[:2], clean=False)
    expected = table[1:].reset_index(drop=True)
    pd.testing.assert_frame_equal(without, expected, check_exact=True)


def robustness_table(
    accuracy: dict[str, list[float]], clean: float, images: int = 100
) -> pd.DataFrame:
    rows = [("none", 0, clean)]
    rows += [(name, s, a) for name, values in accuracy.items() for s, a in enumerate(values, 1)]
    table = pd.DataFrame(rows, columns=["corruption", "severity", "accuracy"])
    draw = np.random.default_rng(0)
    right = [draw.permutation(images) < round(images * each) for each in table["accuracy"]]
    return table.assign(model="vit", images=images, nll=1.0, ece=0.1, right=right)


def corruption_error(
    *views: pd.DataFrame, alexnet: str | None = None, resamples: int = 500
) -> pd.DataFrame:
    parts = Parts("vit", iter(views), pd.DataFrame())
    return merge_corruption_error(parts, alexnet, resamples, seed=3)


def test_the_mean_corruption_error_is_a_mean_of_means() -> None:
    table = robustness_table({"snow": [0.9, 0.7], "fog": [0.6, 0.5], "frost": [0.4, 0.1]}, 0.95)
    error = corruption_error(table)
    assert error["corruption"].tolist() == ["snow", "fog", "frost", "mean"]
    np.testing.assert_allclose(error["error"], [0.2, 0.45, 0.75, 1.4 / 3], rtol=1e-12)
    np.testing.assert_allclose(error["clean_error"], 0.05, rtol=1e-12)
    np.testing.assert_allclose(error["relative_error"], error["error"] - 0.05, rtol=1e-12)
    assert set(error["images"]) == {100}


def test_parts_of_a_model_are_merged() -> None:
    table = robustness_table({"snow": [0.9, 0.7], "fog": [0.6, 0.5]}, 0.95)
    parts = table[:3], table[3:]
    merged = corruption_error(*parts)
    pd.testing.assert_frame_equal(merged, corruption_error(table), check_exact=True)
    scores = merge_robustness(Parts("vit", iter(parts), pd.DataFrame()))
    pd.testing.assert_frame_equal(scores, table.drop(columns="right"))


def test_resamples_are_errors_of_images_drawn_again_with_all_their_views() -> None:
    table = robustness_table({"snow": [0.9, 0.7, 0.3], "fog": [0.6, 0.5]}, 0.95)
    found = corruption_error(table).set_index("corruption")
    weights = np.random.default_rng(3).multinomial(100, [0.01] * 100, size=500)
    again = []
    for times in weights:
        rows = np.repeat(np.arange(100), times)
        accuracy = [each[rows].mean() for each in table["right"]]
        errors = 1 - table.assign(accuracy=accuracy).groupby("corruption")["accuracy"].mean()
        again.append({**errors, "mean": (errors["snow"] + errors["fog"]) / 2})
    drawn = pd.DataFrame(again)
    for name, row in found.iterrows():
        np.testing.assert_allclose(row["error_resampled"], drawn[name][:400], rtol=1e-6)
        np.testing.assert_allclose(row["clean_error_resampled"], drawn["none"][:400], rtol=1e-6)
        ends = row[["ci_low", "ci_high"]].tolist()
        assert ends == pytest.approx(np.percentile(drawn[name], [2.5, 97.5]), rel=1e-12)


# The table of Hendrycks & Dietterich (2019), in percent; noise, blur, weather, digital.
IMAGENET = [
    *(88.6, 89.4, 92.3),
    *(82.0, 82.6, 78.6, 79.8),
    *(86.7, 82.7, 81.9, 56.5),
    *(85.3, 64.6, 71.8, 60.7),
]


def test_the_errors_of_alexnet_are_near_those_of_the_benchmark() -> None:
    """Those are of another run, on images that were read and cut in another way."""
    for data in ("cifar10", "cifar100", "imagenet"):
        assert alexnet_errors(data).index.tolist() == [*CORRUPTIONS]
    ours = alexnet_errors("imagenet").to_numpy()
    np.testing.assert_allclose(ours, np.array(IMAGENET) / 100, atol=0.045)


def test_errors_are_divided_by_those_of_alexnet_where_these_are_known() -> None:
    theirs = alexnet_errors("cifar100")
    half = (theirs / 2).round(3)
    accuracy = {name: [1 - error] * 5 for name, error in half.items()}
    table = robustness_table(accuracy, 0.9, images=1000)
    found = corruption_error(table, alexnet="cifar100", resamples=2).set_index("corruption")
    ratios = (half / theirs).reindex(found.index[:-1])
    np.testing.assert_allclose(found["alexnet_ratio"][:-1], ratios, rtol=1e-12)
    assert found.loc["mean", "alexnet_ratio"] == pytest.approx(ratios.mean(), rel=1e-12)
    assert found.loc["fog", "alexnet_error"] == theirs["fog"] == 0.56536
    assert found.loc["mean", "alexnet_error"] == pytest.approx(theirs.mean(), rel=1e-12)
    # Two severities are not what the published means are of.
    some = robustness_table({name: [0.5, 0.4] for name in theirs.index}, 0.9)
    for views, data in ((some, "cifar100"), (table, None)):
        columns = corruption_error(views, alexnet=data, resamples=2)
        assert columns[["alexnet_error", "alexnet_ratio"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("network", "accuracy", "mce"),
    [("ResNet-50", 39.2304, None), ("DeiT-S", 55.6664, 56.19), ("DeiT-B", 62.8765, 47.06)],
)
def test_means_are_those_of_robustbench(network: str, accuracy: float, mce: float | None) -> None:
    """Its accuracies of 5,000 images of ImageNet-C, in percent, and the mCE that it says."""
    theirs = pd.read_csv(Path(__file__).parent / "robustbench.csv")
    by_corruption = theirs.groupby("corruption")[network].agg(list).to_dict()
    table = robustness_table(by_corruption, 0.8, images=5000)
    found = corruption_error(table, alexnet="imagenet", resamples=2).set_index("corruption")
    mean = found.loc["mean"]
    assert 100 * (1 - mean["error"]) == pytest.approx(accuracy, abs=1e-4)
    if mce:
        # It divides by the errors of another run of AlexNet.
        assert 100 * mean["alexnet_ratio"] == pytest.approx(mce, rel=0.015)


def test_the_data_set_of_alexnet_is_that_of_the_source_or_the_one_that_is_named() -> None:
    cases = (
        ("mini", "source", None),
        ("mini", "imagenet", "imagenet"),
        ("cifar100", "source", "cifar100"),
        ("cifar100", "cifar10", "cifar10"),
    )
    for name, said, found in cases:
        study = load_study(BUNDLED_STUDIES / f"{name}.yaml")
        own = {"robustness": study.sections["robustness"] | {"alexnet": said}}
        measure = registry.declared("corruption_error")
        merging = measure.merging(replace(study, sections=study.sections | own), "vit")
        assert merging == {"alexnet": found, **asdict(study.analysis.bootstrap)}
