from collections import Counter

import pytest

from tests.helpers.studies import FROZEN
from tests.runs.copies import Workflow
from vitscope.files.strict_yaml import load_yaml
from vitscope.package_data import ROOT


@pytest.fixture(scope="module")
def frozen(fresh: Workflow) -> Workflow:
    return Workflow(fresh.root, FROZEN)


def test_a_whole_study(frozen: Workflow) -> None:
    # Two models, and for a figure of four moments the ViT at two more.
    models = 2 + 2
    assert frozen.plan(default="frozen") == {
        "build_split": 3,
        # And one moment of the ViT by its weights alone, whose maps nothing asks for.
        "convert_checkpoint": models,
        "convert_snapshot": 1,
        "extract_kept_latents": models,
        # Of the test images, and of those in conflict.
        "predict": 2 * 2,
        # Fifteen corruptions, in one job that makes them and one of measuring.
        "corrupt_images": 1,
        "measure_model_part": 1,
        "augment_images": 1,
        # Variance of all, amplitudes of the ViT at three moments, and CKA between two models: each
        # job merges the shards that it measures.
        "measure_latents": models + 3 + 1,
        # Three tables of two models.
        "measure_predictions": 3 * 2,
        # Of a model, of a network without images, and of weights in training.
        "measure_model": 3,
        # A landscape, and two moments of a Hessian.
        "measure_loss": 1 + 2,
        # A landscape, two Hessians, and corruptions.
        "merge": 1 + 2 + 1,
        "tabulate": 14,
        "measure_bundled": 1,
        "tabulate_buildup": 1,
        "draw_buildup": 1,
        "draw_figure": 12,
        "draw_video": 1,
        "count_claims": 1,
        "record_run": 1,
        "all": 1,
    }


SHOWN = {
    "build_split": 1,
    "convert_checkpoint": 2,
    "extract_kept_latents": 2,
    "measure_latents": 2,
    "draw_figure": 1,
    "draw_video": 4,
}
# Of checkpoints that are downloaded, whose latents are not kept.
PUBLISHED = {
    "fetch_archive": 1,
    "build_split": 1,
    "fetch_checkpoint": 2,
    "convert_checkpoint": 2,
    "measure_pass": 8,
    "measure_latents": 2,
    "draw_figure": 1,
}


def test_figures_and_videos_of_two_studies(frozen: Workflow) -> None:
    videos = [f"figures/frozen/walk.{suffix}" for suffix in ("webp", "gif", "mp4")]
    targets = ["figures/variance.svg", "figures/walk.webp", *videos, "figures/paper/fig9.pdf"]
    assert frozen.plan(*targets, default="frozen") == Counter(SHOWN) + Counter(PUBLISHED)


@pytest.mark.nightly
def test_what_the_monthly_workflow_makes_are_targets(fresh: Workflow) -> None:
    targets = load_yaml(ROOT / ".github/workflows/paper.yml")["env"]["ONE_PASS"].split()
    jobs = fresh.plan(*targets)
    assert jobs["draw_figure"] + jobs["tabulate"] == len(targets)
    # What takes hours is not among them.
    assert not [rule for rule in jobs if rule in ("measure_model_part", "measure_loss")]
