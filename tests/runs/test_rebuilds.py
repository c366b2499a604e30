"""What is made again after a change: all that depends on it, and nothing else."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.helpers.tiers import some_of
from tests.runs.copies import (
    MADE,
    SHOWN,
    SOME_KINDS,
    TINY,
    Workflow,
    copy_workflow,
    edited,
    write_study,
)

# Of one figure under two names, with two models in two shards, and of one model in one shard.
DRAWN = {"draw_figure": 2}
MERGED = DRAWN | {"merge": 2 + 1}
MEASURED = MERGED | {"measure_latents": 2 * 2 + 1}
# Latents that were kept are measured again as they are; those that were not must be extracted.
MEASURED_AGAIN = MEASURED | {"extract_latents": 1}
EXTRACTED = MEASURED_AGAIN | {"extract_kept_latents": 2 * 2}
CONVERTED_VIT = {
    "convert_checkpoint": 1 + 1,
    "list_blocks": 1 + 1,
    "extract_kept_latents": 2,
    "extract_latents": 1,
    "measure_latents": 2 + 1,
    "merge": 1 + 1,
}
# What is said of the whole study.
OF_THE_STUDY = (f"results/{TINY}/tables/claims.parquet", f"results/{TINY}/run.yaml")
RECORDED = {"record_run": 1}
CLAIMED = RECORDED | {"count_claims": 1}
# Of each kind of `tiny` one, the block tables, and `classification` beside `reliability`.
TABLES = len(SOME_KINDS) + 2


def planned(workflow: Workflow, *targets: str) -> dict[str, int]:
    return workflow.plan(*(targets or SHOWN), default=TINY)


def one_more_line(text: str) -> str:
    """Add a line; in a module of a job, to its work, which stands at its end."""
    return f"{text}    pass\n" if "\nJOB = " in text else f"{text}\n"


def setting(*keys: str, value: Any) -> Callable[[str], str]:
    """Give a setting of a study another value."""

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
    "vitscope/drawing/layout.py": DRAWN,
    "vitscope/claims/published_points/fig9.csv": DRAWN,
    "vitscope/claims/published_points/fig8.csv": {},
    "vitscope/drawing/by_depth.py": DRAWN,
    "vitscope/measures/feature_variance/compute.py": MEASURED_AGAIN,
    "vitscope/measures/fourier/compute.py": {},
    "vitscope/networks/running/latents.py": EXTRACTED,
    "vitscope/networks/building/families/vit.py": DRAWN | CONVERTED_VIT,
    "vitscope/networks/building/families/swin.py": {},
    "vitscope/data/sources/shapes32.py": EXTRACTED | {"build_split": 2},
    "vitscope/errors.py": EXTRACTED | {"build_split": 2, "convert_checkpoint": 3, "list_blocks": 3},
    "vitscope/training/loop.py": {},
    "vitscope/jobs/draw_figure.py": DRAWN,
    "vitscope/jobs/merge.py": MERGED,
    "config/studies/mini.yaml": {},
}
WITH_EVERY_CHANGE = (
    "vitscope/measures/feature_variance/compute.py",
    "vitscope/networks/building/families/vit.py",
)


@pytest.mark.parametrize("file", some_of(EDITED_FILES, *WITH_EVERY_CHANGE))
def test_an_edit_of_a_file(finished: Workflow, file: str) -> None:
    with edited(finished.root / file, one_more_line):
        assert planned(finished) == EDITED_FILES[file]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("file", "rebuilt"),
    [
        ("vitscope/claims/published_points/fig9.csv", CLAIMED),
        ("vitscope/claims/counting.py", CLAIMED),
        ("vitscope/jobs/tabulate.py", CLAIMED | {"tabulate": TABLES}),
    ],
)
def test_an_edit_of_what_claims_are_counted_by(
    finished: Workflow, file: str, rebuilt: dict[str, int]
) -> None:
    with edited(finished.root / file, one_more_line):
        assert planned(finished, *OF_THE_STUDY) == rebuilt


# What is shown of the study, and what is said of all of it.
MEAN, WORDS = ("models", "vit", "mean"), ("description",)
EDITED_SETTINGS = {
    MEAN: (
        [0.4, 0.4, 0.4],
        DRAWN
        | {"convert_checkpoint": 1, "list_blocks": 1, "extract_kept_latents": 2}
        | {"measure_latents": 2, "merge": 1},
        None,
    ),
    WORDS: ("other words", None, RECORDED),
    ("title",): ("another title", None, CLAIMED),
    ("models", "vit", "label"): ("Another", DRAWN, CLAIMED),
    ("training", "epochs"): (3, {}, RECORDED),
    ("analysis", "bootstrap"): ({"seed": 1}, DRAWN | {"merge": 2}, None),
    ("analysis", "images"): (
        12,
        DRAWN | {"extract_kept_latents": 4, "measure_latents": 4, "merge": 2},
        None,
    ),
}


@pytest.mark.parametrize("keys", some_of(EDITED_SETTINGS, MEAN, WORDS))
def test_an_edit_of_a_study(finished: Workflow, keys: tuple[str, ...]) -> None:
    value, shown, said = EDITED_SETTINGS[keys]
    with edited(finished.studies / "tiny.yaml", setting(*keys, value=value)):
        if shown is not None:
            assert planned(finished) == shown
        if said is not None:
            assert planned(finished, *OF_THE_STUDY) == said


def curves(model: str) -> Callable[[str], str]:
    return setting("figures", "fig2a", value={"kind": "fourier_curves", "models": [model]})


KEPT = {"measure_latents": 2, "merge": 1, "draw_figure": 1}
EXTRACTED_ONCE = {"extract_latents": 1, "measure_latents": 1, "merge": 1}
ADDED = {
    # Latents that were kept are measured; those that were not are extracted once.
    "figures/tiny/fig2a.pdf": (curves("resnet"), KEPT),
    "results/whole/fourier/vit.parquet": (curves("vit"), EXTRACTED_ONCE),
    # Without the radial profile, what needs the transform is measured again.
    "figures/tiny/fourier.pdf": (setting("analysis", "fourier", value={"radial": False}), KEPT),
}


@pytest.mark.parametrize("target", some_of(ADDED, "results/whole/fourier/vit.parquet"))
def test_a_study_that_asks_for_more(finished: Workflow, target: str) -> None:
    change, expected = ADDED[target]
    with edited(finished.studies / f"{target.split('/')[1]}.yaml", change):
        assert planned(finished, target) == expected


def test_nothing_is_made_again_after_every_file_was_touched(finished, weights):
    assert planned(finished, *MADE) == {}
    files = [path for path in finished.root.rglob("*") if path.is_file()]
    files = sorted(path for path in files if ".snakemake" not in path.parts)
    files += weights.values()
    random.Random(0).shuffle(files)
    for second, path in enumerate(files, start=int(time.time()) - len(files)):
        os.utime(path, (second, second))
    assert planned(finished, *MADE) == {}


@pytest.mark.nightly
def test_nothing_is_made_again_after_the_folder_was_moved(finished):
    moved = finished.root.rename(finished.root.with_name("moved"))
    try:
        assert planned(Workflow(moved, finished.studies), *MADE) == {}
    finally:
        moved.rename(finished.root)


@pytest.mark.nightly
def test_a_new_style_draws_the_figures_again_and_nothing_else(finished):
    made = {path: path.stat().st_mtime_ns for path in results(finished)}
    before = finished.digests("figures")

    def redder(text: str) -> str:
        return f"{text}\nxtick.color: red\n"

    with edited(finished.root / "vitscope/drawing/style.mplstyle", redder):
        finished.make(*SHOWN, default=TINY)
        during = finished.digests("figures")
        assert {path: path.stat().st_mtime_ns for path in results(finished)} == made
    finished.make(*SHOWN, default=TINY)
    changed = {path for path in before if during[path] != before[path]}
    assert changed == {
        f"figures/{name}.{suffix}"
        for name in ("fig9", f"{TINY}/fig9")
        for suffix in ("pdf", "svg", "png")
    }
    assert finished.digests("figures") == before


def results(workflow: Workflow) -> list[Path]:
    return [path for path in (workflow.root / "results").rglob("*") if path.is_file()]


def painted(file: Path, seed: int) -> Path:
    """Write an image; those of other seeds have as many bytes."""
    pixels = np.random.default_rng(seed).integers(0, 256, (32, 32, 3), np.uint8)
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)
    return file


@pytest.mark.nightly
def test_a_folder_of_images_is_read_again_when_a_file_in_it_changes(tmp_path):
    folder, studies = tmp_path / "images", tmp_path / "studies"
    for seed, name in enumerate(("cat/0.bmp", "cat/1.bmp", "dog/0.bmp")):
        painted(folder / name, seed)
    studies.mkdir()

    def from_folder(settings: dict[str, Any]) -> None:
        data = settings["data"]["shapes32"]
        data |= {"source": {"kind": "folder", "path": str(folder)}, "classes": 2}
        data["splits"] = {"test": {}}
        settings["analysis"]["images"] = 2
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
