"""What is made again after a change: all that depends on it, and nothing else."""

import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.runs.copies import ALL_MADE, Workflow, copy_workflow, edited, write_study

pytestmark = pytest.mark.workflow

DRAWN = {"draw_figure": 1, "draw_default_figure": 1, "all": 1}
RECORDED = {"record_run": 1, "all": 1}
CLAIMED = RECORDED | {"count_claims": 1}
TABULATED = DRAWN | CLAIMED | {"tabulate": 1}
# A job for each of the two models of one study, and for seven shards of one model of the other.
MERGED = TABULATED | {"merge_variance": 2 + 1}
MEASURED = MERGED | {"measure_variance": 2 + 7}
# Latents that were kept are measured again as they are; those that were not must be extracted.
MEASURED_AGAIN = MEASURED | {"extract_latents": 7}
EXTRACTED = MEASURED_AGAIN | {"extract_kept_latents": 2}
CONVERTED_VIT = {
    "convert_checkpoint": 1 + 1,
    "list_blocks": 1 + 1,
    "extract_kept_latents": 1,
    "extract_latents": 7,
    "measure_variance": 1 + 7,
    "merge_variance": 1 + 1,
}


def planned(workflow: Workflow) -> dict[str, int]:
    return workflow.plan(*ALL_MADE, default="tiny")


def one_more_line(text: str) -> str:
    return f"{text}\n"


@pytest.mark.parametrize(
    ("file", "rebuilt"),
    [
        ("vitscope/figures/feature_variance.py", DRAWN),
        ("vitscope/figures/canvas.py", DRAWN),
        ("scripts/draw_figure.py", DRAWN),
        ("resources/style.mplstyle", DRAWN),
        ("resources/published/fig9.csv", DRAWN | CLAIMED),
        ("resources/published/fig8.csv", {}),
        ("vitscope/claims/__init__.py", CLAIMED),
        ("scripts/tabulate.py", CLAIMED | {"tabulate": 1}),
        ("scripts/merge_variance.py", MERGED),
        ("vitscope/variance.py", MEASURED_AGAIN),
        ("vitscope/latents.py", EXTRACTED),
        ("vitscope/families/vit.py", TABULATED | CONVERTED_VIT),
        ("vitscope/families/swin.py", {}),
        ("vitscope/data/shapes32.py", EXTRACTED | {"build_split": 2}),
        ("vitscope/training.py", {}),
        ("config/studies/mini.yaml", {}),
    ],
)
def test_an_edit_of_a_file(finished, file, rebuilt):
    with edited(finished.root / file, one_more_line):
        assert planned(finished) == rebuilt


def test_every_rule_runs_again_when_what_all_scripts_share_is_edited(finished):
    with edited(finished.root / "vitscope/errors.py", one_more_line):
        rebuilt = planned(finished)
    assert rebuilt == EXTRACTED | {
        "build_split": 2,
        "convert_checkpoint": 3,
        "list_blocks": 3,
    }


@pytest.mark.parametrize(
    ("keys", "value", "rebuilt"),
    [
        (("description",), "other words", RECORDED),
        (("training", "epochs"), 3, RECORDED),
        (("title",), "another title", DRAWN | CLAIMED),
        (("models", "vit", "label"), "Another", DRAWN | CLAIMED),
        (("analysis", "bootstrap"), {"seed": 1}, TABULATED | {"merge_variance": 2}),
        (
            ("analysis", "images"),
            12,
            TABULATED | {"extract_kept_latents": 2, "measure_variance": 2, "merge_variance": 2},
        ),
        (
            ("models", "vit", "mean"),
            [0.4, 0.4, 0.4],
            TABULATED
            | dict.fromkeys(("convert_checkpoint", "list_blocks", "extract_kept_latents"), 1)
            | {"measure_variance": 1, "merge_variance": 1},
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


def with_spectra(text: str) -> str:
    settings = yaml.safe_load(text)
    models = list(settings["models"])
    settings["figures"]["fig2a"] = {"kind": "fourier_curves", "models": models}
    return yaml.safe_dump(settings, sort_keys=False)


def test_a_figure_that_is_added_measures_the_latents_that_were_kept(finished):
    with edited(finished.studies / "tiny.yaml", with_spectra):
        plan = finished.plan("figures/tiny/fig2a.pdf", default="tiny")
    measured = dict.fromkeys(("measure_diagonal", "measure_spectrum", "merge_fourier"), 2)
    assert plan == measured | {"draw_figure": 1}


def test_a_figure_that_is_added_extracts_once_what_was_not_kept(finished):
    with edited(finished.studies / "sharded.yaml", with_spectra):
        plan = finished.plan("results/sharded/fourier/vit.parquet", default="tiny")
    measured = dict.fromkeys(("extract_latents", "measure_diagonal", "measure_spectrum"), 7)
    assert plan == measured | {"merge_fourier": 1}


def test_nothing_is_made_again_after_every_file_was_touched(finished):
    assert planned(finished) == {}
    files = [path for path in finished.root.rglob("*") if path.is_file()]
    files = sorted(path for path in files if ".snakemake" not in path.parts)
    files += sorted(finished.studies.parent.parent.rglob("*.pth.tar"))
    random.Random(0).shuffle(files)
    for second, path in enumerate(files, start=int(time.time()) - len(files)):
        os.utime(path, (second, second))
    assert planned(finished) == {}


def test_nothing_is_made_again_after_the_folder_was_moved(finished):
    moved = finished.root.rename(finished.root.with_name("moved"))
    try:
        assert planned(Workflow(moved, finished.studies)) == {}
    finally:
        moved.rename(finished.root)


def test_a_new_style_draws_the_figures_again_and_nothing_else(finished):
    made = {path: path.stat().st_mtime_ns for path in results(finished)}
    before = finished.digests("figures")

    def redder(text: str) -> str:
        return f"{text}\nxtick.color: red\n"

    with edited(finished.root / "resources/style.mplstyle", redder):
        finished.make("all", default="tiny")
        during = finished.digests("figures")
        assert {path: path.stat().st_mtime_ns for path in results(finished)} == made
    finished.make("all", default="tiny")
    changed = {path for path in before if during[path] != before[path]}
    assert changed == {f"figures/fig9.{suffix}" for suffix in ("pdf", "svg", "png")}
    assert finished.digests("figures") == before


def results(workflow: Workflow) -> list[Path]:
    return [path for path in (workflow.root / "results").rglob("*") if path.is_file()]


def painted(file: Path, seed: int) -> Path:
    """Write an image; those of other seeds have as many bytes."""
    pixels = np.random.default_rng(seed).integers(0, 256, (32, 32, 3), np.uint8)
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)
    return file


def test_a_folder_of_images_is_read_again_when_a_file_in_it_changes(tmp_path):
    folder, studies = tmp_path / "images", tmp_path / "studies"
    for seed, name in enumerate(("cat/0.bmp", "cat/1.bmp", "dog/0.bmp")):
        painted(folder / name, seed)
    studies.mkdir()

    def from_folder(settings: dict[str, Any]) -> None:
        data = settings["data"]["shapes32"]
        data |= {"source": {"kind": "folder", "path": str(folder)}, "classes": 2}
        data["splits"] = {"test": {}}
        for name, model in settings["models"].items():
            model["checkpoint"] = {"path": f"{name}.pth"}

    write_study(studies / "pictures.yaml", from_folder)
    workflow = copy_workflow(tmp_path / "copy", studies)
    target = "results/pictures/data/shapes32/test.safetensors"
    workflow.make("--cores", "1", target)
    assert workflow.plan(target) == {}

    replaced = folder / "dog" / "0.bmp"
    before, known = replaced.read_bytes(), replaced.stat()
    painted(replaced, 3)
    assert replaced.stat().st_size == known.st_size
    assert workflow.plan(target) == {"build_split": 1}
    replaced.write_bytes(before)
    os.utime(replaced, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert workflow.plan(target) == {}

    added = painted(folder / "dog" / "1.bmp", 4)
    assert workflow.plan(target) == {"build_split": 1}
    added.unlink()
    assert workflow.plan(target) == {}
