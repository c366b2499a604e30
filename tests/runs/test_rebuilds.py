import os
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.helpers.tiers import some_of
from tests.runs.copies import MADE, SHOWN, TINY, Workflow, edited, in_work

# Of one figure under two names, with two models in two shards, and of one model in one shard.
DRAWN = {"draw_figure": 2}
MERGED = DRAWN | {"measure_latents": 2 + 1}
# Latents that were kept are measured again as they are; for those that were not there is a pass.
MEASURED = MERGED | {"measure_pass": 1}
EXTRACTED = MEASURED | {"extract_kept_latents": 2 * 2}
CONVERTED_VIT = {
    "convert_checkpoint": 1 + 1,
    "extract_kept_latents": 2,
    "measure_latents": 1 + 1,
    "measure_pass": 1,
}
# What is said of the whole study.
OF_THE_STUDY = (f"results/{TINY}/tables/claims.parquet", f"results/{TINY}/run.yaml")
RECORDED = {"record_run": 1}
CLAIMED = RECORDED | {"count_claims": 1}


def planned(workflow: Workflow, *targets: str) -> dict[str, int]:
    return workflow.plan(*(targets or SHOWN), default=TINY)


def one_more_line(text: str) -> str:
    """Add a line; to code one that does nothing."""
    is_code = "\nimport " in text or "\nfrom " in text
    return f"{text}pass\n" if is_code else f"{text}\n"


def setting(*keys: str, value: Any) -> Callable[[str], str]:
    def change(text: str) -> str:
        settings = yaml.safe_load(text)
        entry = settings
        for key in keys[:-1]:
            entry = entry[key]
        entry[keys[-1]] = value
        return yaml.safe_dump(settings, sort_keys=False)

    return change


# The rules that an edit may reach are bounded in tests/planning; here real edits rerun jobs.
EDITED_FILES = {
    "vitscope/drawing/style.mplstyle": DRAWN,
    "vitscope/claims/published_points/fig9.csv": DRAWN,
    "vitscope/drawing/charts.py": DRAWN,
    "vitscope/measures/feature_variance/compute.py": MEASURED,
    "vitscope/networks/running/extraction.py": EXTRACTED,
    "vitscope/networks/building/families/vit.py": DRAWN | CONVERTED_VIT,
    "vitscope/data/sources/shapes32.py": EXTRACTED | {"build_split": 2},
    "vitscope/errors.py": EXTRACTED | {"build_split": 2, "convert_checkpoint": 3},
    "config/studies/mini.yaml": {},
    # The functions that do the work of jobs, each beside others that do that of other jobs.
    "vitscope/jobs/figures.py:draw_figure_job": DRAWN,
    "vitscope/jobs/measures.py:merge_job": MERGED,
}
WITH_EVERY_CHANGE = (
    "vitscope/measures/feature_variance/compute.py",
    "vitscope/networks/building/families/vit.py",
    "vitscope/jobs/figures.py:draw_figure_job",
    "vitscope/jobs/measures.py:merge_job",
)


@pytest.mark.parametrize("place", some_of(EDITED_FILES, *WITH_EVERY_CHANGE))
def test_an_edit_of_a_file(finished: Workflow, place: str) -> None:
    file, _, work = place.partition(":")
    with edited(finished.root / file, in_work(work) if work else one_more_line):
        assert planned(finished) == EDITED_FILES[place]


def test_a_block_table_that_is_made_again(finished: Workflow) -> None:
    """With it, all that it says the memory and time of: predictions and losses too."""
    with edited(finished.root / "vitscope/jobs/networks.py", in_work("convert_checkpoint_job")):
        table, loss = f"results/{TINY}/tables/reliability.parquet", "landscape/vit.parquet"
        assert planned(finished, table, f"results/{TINY}/{loss}") == {
            "convert_checkpoint": 1,
            "predict": 1,
            "measure_predictions": 1,
            "tabulate": 1,
            "measure_loss": 2,
            "merge": 1,
        }


# What is shown of the study, and what is said of all of it.
MEAN, WORDS, STYLE = ("models", "vit", "mean"), ("description",), ("style",)
EDITED_SETTINGS = {
    MEAN: (
        [0.4, 0.4, 0.4],
        DRAWN | {"convert_checkpoint": 1, "extract_kept_latents": 2} | {"measure_latents": 1},
        None,
    ),
    WORDS: ("other words", None, CLAIMED),
    ("title",): ("another title", None, CLAIMED),
    ("models", "vit", "label"): ("Another", DRAWN, CLAIMED),
    # The record of the run says it; nothing is measured, and no claim counted.
    STYLE: ({"width": 3.25, "font_size": 8, "palette": {"vit": "#123456"}}, DRAWN, RECORDED),
    # Claims compare models whose recipes differ in one thing.
    ("training", "epochs"): (3, {}, CLAIMED),
    ("analysis", "bootstrap"): ({"seed": 1}, DRAWN | {"measure_latents": 2}, None),
    ("analysis", "images"): (12, DRAWN | {"extract_kept_latents": 4, "measure_latents": 2}, None),
}


@pytest.mark.parametrize("keys", some_of(EDITED_SETTINGS, MEAN, WORDS, STYLE))
def test_an_edit_of_a_study(finished: Workflow, keys: tuple[str, ...]) -> None:
    value, shown, said = EDITED_SETTINGS[keys]
    targets = (SHOWN if shown is not None else ()) + (OF_THE_STUDY if said is not None else ())
    with edited(finished.studies / "tiny.yaml", setting(*keys, value=value)):
        assert planned(finished, *targets) == (shown or {}) | (said or {})


def curves(model: str) -> Callable[[str], str]:
    return setting("figures", "fig2a", value={"kind": "fourier_curves", "models": [model]})


KEPT = {"measure_latents": 1, "draw_figure": 1}
IN_A_PASS = {"measure_pass": 1, "measure_latents": 1}
ADDED = {
    # Latents that were kept are measured; otherwise there is a pass.
    "figures/tiny/fig2a.pdf": (curves("resnet"), KEPT),
    "results/whole/fourier/vit.parquet": (curves("vit"), IN_A_PASS),
    # Without the radial profile, what needs the transform is measured again.
    "figures/tiny/fourier.pdf": (setting("analysis", "fourier", value={"radial": False}), KEPT),
}


@pytest.mark.parametrize("target", some_of(ADDED, "results/whole/fourier/vit.parquet"))
def test_a_study_that_asks_for_more(finished: Workflow, target: str) -> None:
    change, expected = ADDED[target]
    with edited(finished.studies / f"{target.split('/')[1]}.yaml", change):
        assert planned(finished, target) == expected


def test_nothing_is_made_again_after_every_file_was_touched(finished, weights):
    files = [path for path in finished.root.rglob("*") if path.is_file()]
    files = sorted(path for path in files if ".snakemake" not in path.parts)
    files += weights.values()
    random.Random(0).shuffle(files)
    for second, path in enumerate(files, start=int(time.time()) - len(files)):
        os.utime(path, (second, second))
    assert planned(finished, *MADE) == {}
