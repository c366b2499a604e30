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


def test_a_figure_and_videos(frozen: Workflow) -> None:
    videos = [f"figures/frozen/walk.{suffix}" for suffix in ("webp", "gif", "mp4")]
    targets = ["figures/variance.svg", "figures/walk.webp", *videos]
    rules = ("convert_checkpoint", "extract_kept_latents", "measure_latents")
    assert frozen.plan(*targets, default="frozen") == dict.fromkeys(rules, 2) | {
        "build_split": 1,
        "draw_figure": 1,
        "draw_video": 1 + len(videos),
    }


def test_a_figure_from_the_published_checkpoints(fresh: Workflow) -> None:
    rules = ("fetch_checkpoint", "convert_checkpoint", "measure_latents")
    shards = {"measure_pass": 8}
    assert fresh.plan("figures/paper/fig9.pdf") == dict.fromkeys(rules, 2) | shards | {
        "fetch_archive": 1,
        "build_split": 1,
        "draw_figure": 1,
    }


@pytest.mark.nightly
def test_what_the_monthly_workflow_makes_are_targets(fresh: Workflow) -> None:
    targets = load_yaml(ROOT / ".github/workflows/paper.yml")["env"]["ONE_PASS"].split()
    jobs = fresh.plan(*targets)
    assert jobs["draw_figure"] + jobs["tabulate"] == len(targets)
    # What takes hours is not among them.
    assert not [rule for rule in jobs if rule in ("measure_model_part", "measure_loss")]
