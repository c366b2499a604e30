"""How many jobs of each rule the bundled studies take."""

import pytest
import yaml

from vitscope.package_data import ROOT


def measuring(models: int) -> dict[str, int]:
    rules = ("convert_checkpoint", "list_blocks", "extract_latents", "measure_latents", "merge")
    return dict.fromkeys(rules, models) | {"build_split": 1}


def test_the_default_study(fresh):
    plan = fresh.plan()
    # Variance of seven models, of three more seeds and of two moments; amplitudes of seven and of
    # two moments; CKA of three, and of two beside each other; three measures of the tokens of four.
    assert plan["measure_latents"] == (7 + 3 + 2) + (7 + 2) + 3 + 2 + 3 * 4
    # Two trajectories, and the training of three.
    assert plan["measure_weights"] == 2 + 3
    assert plan["measure_network"] == 6 + 2 + 2
    assert plan | dict.fromkeys(MEASURING, 0) == dict.fromkeys(MEASURING, 0) | {
        "build_split": 3,
        # Eighteen models, and two moments of one of them.
        "convert_checkpoint": 18 + 2,
        "convert_snapshot": 9,
        "list_blocks": 18 + 2,
        "extract_latents": 12,
        "predict": 20,
        "corrupt_images": 15,
        "augment_alike": 3,
        "augment_images": 11,
        # What follows the first decision is known when it has been made.
        "decide_step": 1,
        "tabulate_buildup": 1,
        "draw_default_buildup": 1,
        "draw_default_figure": 47,
        "draw_default_video": 1,
        "merge_pair": 1,
        "tabulate": 29,
        "count_claims": 1,
        "draw_claims": 1,
        "record_run": 1,
        "all": 1,
    }


MEASURING = (
    "measure_latents",
    "measure_predictions",
    "measure_model",
    "measure_model_part",
    "measure_loss",
    "measure_network",
    "measure_weights",
    "merge",
)


def test_one_figure_of_the_default_study(fresh):
    figure = {"draw_default_figure": 1}
    assert fresh.plan("figures/fig9.pdf") == measuring(2) | figure
    assert fresh.plan("figures/figD1.svg") == measuring(5) | figure


def test_a_video_of_the_default_study(fresh):
    rules = ("convert_checkpoint", "list_blocks")
    jobs = dict.fromkeys(rules, 1)
    assert fresh.plan("figures/walk.webp") == jobs | {"draw_default_video": 1}
    formats = [f"figures/mini/walk.{suffix}" for suffix in ("webp", "gif", "mp4")]
    assert fresh.plan(*formats) == jobs | {"draw_video": 3}


def test_a_figure_from_the_published_checkpoints(fresh):
    shards = {"extract_latents": 8, "measure_latents": 8}
    assert fresh.plan("figures/paper/fig9.pdf") == measuring(2) | shards | {
        "fetch_archive": 1,
        "fetch_checkpoint": 2,
        "draw_figure": 1,
    }


@pytest.mark.nightly
def test_training_the_bundled_models(fresh):
    assert fresh.plan("train_mini") == {"build_split": 2, "train_model": 18, "train_mini": 1}


@pytest.mark.nightly
def test_what_the_monthly_workflow_makes_are_targets(fresh):
    text = (ROOT / ".github" / "workflows" / "paper.yml").read_text(encoding="utf-8")
    targets = yaml.safe_load(text)["env"]["ONE_PASS"].split()
    jobs = fresh.plan(*targets)
    assert jobs["draw_figure"] + jobs["tabulate"] == len(targets)
    # What takes hours is not among them.
    assert not [rule for rule in jobs if rule in ("measure_model_part", "measure_loss")]
