"""Build-ups of a study: what is filled in, what is refused, and what jobs are given."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.helpers.jobs import values_of
from tests.helpers.studies import mini_with
from vitscope.buildup.proposal import plan_of
from vitscope.buildup.rule import Plan
from vitscope.jobs import buildups
from vitscope.studies.loading import load_study


def buildup(**settings: Any) -> dict[str, Any]:
    return {"grown": {"baseline": "resnet"} | settings}


def test_what_a_job_is_given(tmp_path: Path) -> None:
    study = load_study(mini_with(tmp_path, buildups=buildup(training={"epochs": 3}, steps=2)))
    given = buildups.what_is_tried(study, "grown")
    assert given["baseline"] == study.network("resnet") | {
        "family": "alternet",
        "arch": {
            "block": "bottleneck",
            "blocks": [2, 3, 4, 2],
            "width": 8,
            "heads": [3, 6, 12, 24],
            "head_dim": 64,
            "window": 4,
        },
    }
    assert plan_of(given) == Plan((2, 3, 4, 2), 1, 2)
    # The recipe of the baseline, which has 8 epochs where the study has 16, and the changes.
    assert asdict(study.recipe_of_steps("grown")) == asdict(study.recipe("resnet")) | {"epochs": 3}
    assert buildups.weights_of_steps(study, "grown") == "trained"
    assert buildups.bundled_step(study, "grown", 2) is None
    assert values_of("draw_buildup", study, buildup="grown")["facts"] == {
        "Study": "own (small models on generated images)",
        "Data": "shapes32, test images",
        "Baseline": "ResNet, as an AlterNet without attention",
        "Training": "3 epochs of all training images, seed 0",
        "Weights": "trained by this workflow",
    }
