"""What rules ask of a cluster: at most one GPU, and enough by what was measured."""

import os
import re
from math import ceil, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from vitscope.hessian.lanczos import LARGEST_BASIS
from vitscope.studies import BUNDLED_STUDIES, Study, load_study

ROOT = Path(__file__).parents[1]
FILE = ROOT / "rules" / "resources.smk"
MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
VIT = SimpleNamespace(study="mini", model="vit", split="test", snapshot="end", part="0", shard="0")


def rules() -> dict[str, tuple[str | None, str]]:
    """Return what each rule inherits from, and its text."""
    found: dict[str, tuple[str | None, str]] = {}
    start = re.compile(r"^(?:use rule (\w+) as (\w+) with|rule (\w+)):", re.MULTILINE)
    for file in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]:
        _, *parts = start.split(file.read_text(encoding="utf-8"))
        for parent, heir, name, text in zip(*[iter(parts)] * 4, strict=True):
            found[heir or name] = parent, text
    return found


def profile(name: str) -> dict[str, Any]:
    text = (ROOT / "profiles" / name / "config.yaml").read_text(encoding="utf-8")
    settings: dict[str, Any] = yaml.safe_load(text)
    return settings


def functions(study: Study = MINI) -> dict[str, Any]:
    """Return the functions of the rules, for one study."""
    helpers: dict[str, Any] = {
        "ceil": ceil,
        "sqrt": sqrt,
        "os": os,
        "study_of": lambda wildcards: study,
        "model_of": lambda wildcards: study.model(wildcards.model),
        "network_of": lambda wildcards: {"image_size": 32},
        "recipe_of": lambda wildcards: study.recipe(wildcards.model),
        "classified": lambda wildcards: {"wanted": None},
    }
    exec(compile(FILE.read_text(encoding="utf-8"), FILE, "exec"), helpers)
    return helpers


def weights(folder: Path, size: int) -> dict[str, str]:
    """Return the input of a job that reads weights of so many bytes, which take no room."""
    path = folder / "weights.safetensors"
    with path.open("wb") as file:
        file.truncate(size)
    return {"weights": str(path)}


def test_every_job_is_short_or_says_what_it_takes() -> None:
    for name, (parent, text) in rules().items():
        if parent is None and "script:" in text:
            local = "localrule: True" in text
            asks = "mem_mb=" in text and "runtime=" in text
            assert local != asks, name


def test_rules_that_inherit_are_as_local_as_what_they_inherit_from() -> None:
    # Snakemake itself hands on neither `localrule`, nor resources that it finds replaced.
    for name, (parent, text) in rules().items():
        if parent is not None:
            assert ("localrule: True" in text) == ("localrule: True" in rules()[parent][1]), name
            assert "resources:" not in text or ("mem_mb=" in text and "runtime=" in text), name


def test_what_needs_the_network_is_local() -> None:
    fetching = {name: text for name, (_, text) in rules().items() if name.startswith("fetch_")}
    assert {"fetch_archive", "fetch_checkpoint", "fetch_snapshot"} <= fetching.keys()
    assert all("localrule: True" in text for text in fetching.values())


def test_what_runs_a_model_may_have_a_gpu_and_nothing_else() -> None:
    for name, (parent, text) in rules().items():
        if parent is None:
            assert ("gpu=gpu_of" in text) == ("device=lambda" in text), name


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 1), ("cpu", 0), ("auto", 0)])
def test_a_gpu_is_asked_for_where_the_study_demands_one(device: str, gpus: int) -> None:
    study = Study("mini", MINI.path, MINI.settings | {"device": device})
    assert functions(study)["gpu_of"](VIT) == gpus


def test_requests_double_at_every_attempt(tmp_path: Path) -> None:
    ask, given = functions(), weights(tmp_path, 10_000_000)
    for function in (ask["memory_of_passes"], ask["minutes_of"](ask["passes_of_shard"])):
        first, second, third = (function(VIT, given, attempt) for attempt in (1, 2, 3))
        assert (second, third) == (2 * first, 4 * first)


def test_every_number_of_passes_is_of_the_study() -> None:
    ask, analysis = functions(), MINI.settings["analysis"]
    assert ask["passes_of_shard"](VIT) == 256
    points, rows = analysis["landscape"]["points"], analysis["landscape"]["rows_per_job"]
    images = analysis["augmented"]["images"]
    assert ask["passes_of_landscape"](VIT) == images * points * rows
    for name in ("prediction", "fit", "noise", "lesions", "robustness", "largest", "density"):
        assert ask[f"passes_of_{name}"](VIT) > 0
    assert ask["minutes_of_training"](VIT, 1) > ask["LEAST_MINUTES"]
    assert ask["memory_of_training"](VIT, 1) > 1000


# Megabytes that scripts took at their peak, of ViT-Ti, Swin-Ti and the ViT of mini.
@pytest.mark.parametrize(
    ("size", "measured"), [(21_700_000, 700), (110_300_000, 1159), (1_400_000, 460)]
)
def test_batches_of_64_images_have_the_memory_that_they_took(
    tmp_path: Path, size: int, measured: int
) -> None:
    ask = functions()
    asked = ask["memory_of_passes"](VIT, weights(tmp_path, size), 1) - ask["ON_A_NODE"]
    assert MINI.settings["analysis"]["batch_size"] == 64
    assert measured * 1.1 <= asked <= measured * 2


# Of points of a landscape, in float32: ViT-Ti, Swin-Ti and the ViT of mini.
@pytest.mark.parametrize(
    ("size", "measured"), [(21_600_000, 606), (110_200_000, 1251), (1_400_000, 478)]
)
def test_landscapes_have_the_memory_that_they_took(
    tmp_path: Path, size: int, measured: int
) -> None:
    ask = functions()
    asked = ask["memory_of_landscape"](VIT, weights(tmp_path, size), 1) - ask["ON_A_NODE"]
    assert MINI.settings["analysis"]["landscape"]["batch_size"] == 32
    assert measured * 1.1 <= asked <= measured * 2


def test_larger_batches_of_a_landscape_ask_for_more(tmp_path: Path) -> None:
    analysis = MINI.settings["analysis"]
    large = analysis | {"landscape": analysis["landscape"] | {"batch_size": 128}}
    study = Study("mini", MINI.path, MINI.settings | {"analysis": large})
    given = weights(tmp_path, 21_600_000)
    asked = [functions(each)["memory_of_landscape"](VIT, given, 1) for each in (MINI, study)]
    # What ViT-Ti took more for 128 images than for 32.
    assert asked[1] - asked[0] >= 245 * 1.1


def test_hessians_have_the_memory_that_they_took(tmp_path: Path) -> None:
    ask = functions()
    function = ask["memory_of_hessian"](ask["vectors_of_largest"])
    asked = function(VIT, weights(tmp_path, 1_400_000), 1) - ask["ON_A_NODE"]
    assert MINI.settings["analysis"]["hessian"]["batch_size"] == 32
    assert 978 * 1.1 <= asked <= 978 * 3
    assert ask["LEAST_VECTORS"] == LARGEST_BASIS


def test_what_reads_latents_is_in_one_job_with_what_makes_them() -> None:
    line = re.compile(r"^        latents=", re.MULTILINE)
    making = {name for name, (_, text) in rules().items() if line.search(text)}
    grouped = dict(entry.split("=") for entry in profile("slurm")["groups"])
    assert grouped == dict.fromkeys(making, "shard")


def test_profiles_agree_where_no_site_differs() -> None:
    ours, theirs = profile("default"), profile("slurm")
    assert {key: theirs.get(key) for key in ours.keys() - {"cores"}} == {
        key: value for key, value in ours.items() if key != "cores"
    }
