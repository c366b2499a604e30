"""What is made again after a change: all that depends on it, and nothing else."""

import os
import random
from pathlib import Path

import pytest
import yaml

from tests.workflow.copies import ALL_MADE, Workflow, edited

pytestmark = pytest.mark.workflow

DRAWN = {"draw_feature_variance": 1, "draw_default_feature_variance": 1}
TABULATED = DRAWN | {"tabulate_variance": 1, "count_claims": 1, "all": 1}
# Seven jobs in the study with seven shards, and one for each of the two models of the other.
MERGED = TABULATED | {"merge_variance": 3}
MEASURED = MERGED | {"measure_variance": 9}
MEASURED_VIT = MEASURED | {"merge_variance": 2, "measure_variance": 8}
# Latents that were kept are measured again as they are; those that were not must be extracted.
MEASURED_AGAIN = MEASURED | {"extract_latents": 7}
EXTRACTED = MEASURED_AGAIN | {"extract_kept_latents": 2}
CONVERTED_VIT = MEASURED_VIT | {
    "extract_latents": 7,
    "extract_kept_latents": 1,
    "list_blocks": 2,
    "convert_checkpoint": 2,
    "record_run": 1,
}


def planned(workflow: Workflow) -> dict[str, int]:
    return workflow.plan(*ALL_MADE, default="tiny")


def comment(text: str) -> str:
    return f"{text}# changed\n"


@pytest.mark.parametrize(
    ("file", "rebuilt"),
    [
        ("vitscope/figures/feature_variance.py", DRAWN | {"all": 1}),
        ("vitscope/figures/canvas.py", DRAWN | {"all": 1}),
        ("scripts/draw_figure.py", DRAWN | {"all": 1}),
        ("resources/style.mplstyle", DRAWN | {"all": 1}),
        ("resources/published/fig9.csv", DRAWN | {"count_claims": 1, "all": 1}),
        ("resources/published/fig8.csv", {}),
        ("vitscope/claims.py", {"count_claims": 1, "all": 1}),
        ("scripts/tabulate.py", {"tabulate_variance": 1, "count_claims": 1, "all": 1}),
        ("scripts/merge_variance.py", MERGED),
        ("vitscope/variance.py", MEASURED_AGAIN),
        ("vitscope/latents.py", EXTRACTED),
        ("vitscope/families/vit.py", CONVERTED_VIT),
        ("vitscope/families/swin.py", {}),
        ("vitscope/data/shapes32.py", EXTRACTED | {"build_split": 2, "record_run": 1}),
        ("vitscope/training.py", {}),
        ("config/studies/mini.yaml", {}),
    ],
)
def test_an_edit_of_a_file(finished, file, rebuilt):
    with edited(finished.root / file, comment):
        assert planned(finished) == rebuilt


def test_every_rule_runs_again_when_what_all_scripts_share_is_edited(finished):
    with edited(finished.root / "vitscope/errors.py", comment):
        rebuilt = planned(finished)
    assert rebuilt == EXTRACTED | {
        "build_split": 2,
        "convert_checkpoint": 3,
        "list_blocks": 3,
        "record_run": 1,
    }


RECORDED = {"record_run": 1, "all": 1}


@pytest.mark.parametrize(
    ("keys", "value", "rebuilt"),
    [
        (("description",), "other words", RECORDED),
        (("training", "epochs"), 3, RECORDED),
        (("title",), "another title", DRAWN | {"count_claims": 1} | RECORDED),
        (("models", "vit", "label"), "Another", DRAWN | {"count_claims": 1} | RECORDED),
        (
            ("analysis", "bootstrap"),
            {"seed": 1},
            TABULATED | {"merge_variance": 2} | RECORDED,
        ),
        (
            ("analysis", "images"),
            12,
            MEASURED
            | {"merge_variance": 2, "measure_variance": 2, "extract_kept_latents": 2}
            | RECORDED,
        ),
        (
            ("models", "vit", "mean"),
            [0.4, 0.4, 0.4],
            CONVERTED_VIT
            | {"merge_variance": 1, "measure_variance": 1, "extract_kept_latents": 1}
            | {"convert_checkpoint": 1, "list_blocks": 1}
            | RECORDED,
        ),
    ],
)
def test_an_edit_of_a_study(finished, keys, value, rebuilt):
    def change(text: str) -> str:
        settings = yaml.safe_load(text)
        entry = settings
        for key in keys[:-1]:
            entry = entry[key]
        entry[keys[-1]] = value
        return yaml.safe_dump(settings, sort_keys=False)

    with edited(finished.studies / "tiny.yaml", change):
        assert planned(finished) == rebuilt


def test_nothing_is_made_again_after_every_file_was_touched(finished):
    assert planned(finished) == {}
    files = [path for path in finished.root.rglob("*") if path.is_file()]
    files = sorted(path for path in files if ".snakemake" not in path.parts)
    files += sorted(finished.studies.parent.parent.rglob("*.pth.tar"))
    random.Random(0).shuffle(files)
    newest = max(path.stat().st_mtime for path in files)
    for second, path in enumerate(files, start=1):
        os.utime(path, (newest + second, newest + second))
    assert planned(finished) == {}


def test_a_new_style_draws_the_figures_again_and_nothing_else(finished):
    made = {path: path.stat().st_mtime_ns for path in results(finished)}
    before = finished.digests("figures")

    def smaller(text: str) -> str:
        return text + "\nfont.size: 5\n"

    with edited(finished.root / "resources/style.mplstyle", smaller):
        finished.make("all", default="tiny")
        during = finished.digests("figures")
        assert {path: path.stat().st_mtime_ns for path in results(finished)} == made
    finished.make("all", default="tiny")
    changed = {path for path in before if during[path] != before[path]}
    assert changed == {f"figures/fig9.{suffix}" for suffix in ("pdf", "svg", "png")}
    assert finished.digests("figures") == before


def results(workflow: Workflow) -> list[Path]:
    return [path for path in (workflow.root / "results").rglob("*") if path.is_file()]
