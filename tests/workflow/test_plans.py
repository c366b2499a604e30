"""How many jobs of each rule the bundled studies take."""

import pytest

pytestmark = pytest.mark.workflow


def measuring(models: int) -> dict[str, int]:
    rules = ("convert_checkpoint", "list_blocks", "extract_latents", "measure_variance")
    return dict.fromkeys((*rules, "merge_variance"), models) | {"build_split": 1}


def test_the_default_study(fresh):
    assert fresh.plan() == measuring(6) | {
        "draw_default_figure": 2,
        "tabulate": 1,
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
