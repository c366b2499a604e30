"""How many jobs of each rule the bundled studies take."""

import pytest
import yaml

from vitscope.settings.loading import ROOT

pytestmark = pytest.mark.workflow


def measuring(models: int) -> dict[str, int]:
    rules = ("convert_checkpoint", "list_blocks", "extract_latents", "measure_variance")
    return dict.fromkeys((*rules, "merge_variance"), models) | {"build_split": 1}


def test_the_default_study(fresh):
    shards_of_all = ("measure_diagonal", "measure_spectrum", "merge_fourier")
    scored = ("score_classification", "score_shape_texture", "measure_robustness")
    assert fresh.plan() == measuring(6) | dict.fromkeys(
        (*shards_of_all, *scored, "measure_fit"), 6
    ) | {
        "build_split": 3,
        "convert_checkpoint": 7,
        "list_blocks": 7,
        "convert_snapshot": 3,
        "measure_hessian": 5,
        "merge_hessian": 3,
        "measure_hessian_density": 2,
        "merge_hessian_density": 2,
        "merge_robustness": 6,
        "predict": 2 * 6,
        "merge_spectrum": 3,
        "measure_cka": 3,
        "merge_cka": 3,
        "measure_lesions": 4,
        "measure_frequency_noise": 2,
        "corrupt_images": 15,
        "trace_trajectory": 2,
        "augment_alike": 1,
        "augment_images": 5,
        "measure_landscape": 2 * 4,
        "merge_landscape": 4,
        "draw_default_figure": 21,
        "tabulate": 17,
        "count_claims": 1,
        "record_run": 1,
        "all": 1,
    }


def test_one_figure_of_the_default_study(fresh):
    figure = {"draw_default_figure": 1}
    assert fresh.plan("figures/fig9.pdf") == measuring(2) | figure
    assert fresh.plan("figures/figD1.svg") == measuring(4) | figure


def test_a_figure_from_the_published_checkpoints(fresh):
    shards = {"extract_latents": 8, "measure_variance": 8}
    assert fresh.plan("figures/paper/fig9.pdf") == measuring(2) | shards | {
        "fetch_archive": 1,
        "fetch_checkpoint": 2,
        "draw_figure": 1,
    }


def test_training_the_bundled_models(fresh):
    assert fresh.plan("train_mini") == {"build_split": 2, "train_model": 7, "train_mini": 1}


def test_what_the_monthly_workflow_makes_are_targets(fresh):
    text = (ROOT / ".github" / "workflows" / "paper.yml").read_text(encoding="utf-8")
    targets = yaml.safe_load(text)["env"]["ONE_PASS"].split()
    jobs = fresh.plan(*targets)
    assert jobs["draw_figure"] + jobs["tabulate"] == len(targets)
    # What takes hours is not among them.
    assert not [rule for rule in jobs if rule.startswith(("measure_h", "measure_l", "measure_r"))]
