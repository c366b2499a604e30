"""What rules ask of a cluster: at most one GPU, and enough by what was measured."""

import os
import re
from functools import cache
from math import ceil, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers.rules import ROOT, rules
from vitscope.measures.hessian.lanczos import LARGEST_BASIS
from vitscope.networks.blocks import block_table
from vitscope.networks.empty import build_empty
from vitscope.networks.family import find_family
from vitscope.settings.loading import BUNDLED_STUDIES, load_study
from vitscope.settings.study import Study
from vitscope.workflow.tables import find_table

FILE = ROOT / "rules" / "resources.smk"
MINI, PAPER = (load_study(BUNDLED_STUDIES / f"{name}.yaml") for name in ("mini", "paper"))
VIT = SimpleNamespace(study="mini", model="vit", split="test", snapshot="end", part="0", shard="0")


def profile(name: str) -> dict[str, Any]:
    text = (ROOT / "profiles" / name / "config.yaml").read_text(encoding="utf-8")
    settings: dict[str, Any] = yaml.safe_load(text)
    return settings


def functions(study: Study = MINI) -> dict[str, Any]:
    """Return the functions of the rules, for one study."""

    def network_of(wildcards: SimpleNamespace) -> dict[str, Any]:
        model = study.model(wildcards.model)
        size = study.dataset(model["data"])["image_size"]
        return {"family": model["family"], "arch": model["arch"], "image_size": size}

    helpers: dict[str, Any] = {
        "cache": cache,
        "ceil": ceil,
        "sqrt": sqrt,
        "os": os,
        "re": re,
        "clear": lambda function, *arguments: function(*arguments),
        "study_of": lambda wildcards: study,
        "dataset_of": lambda wildcards: study.dataset(wildcards.dataset),
        "network_of": network_of,
        "recipe_of": lambda wildcards: study.recipe(wildcards.model),
        "classified": lambda wildcards: {"wanted": None},
    }
    exec(compile(FILE.read_text(encoding="utf-8"), FILE, "exec"), helpers)
    return helpers


def changed(study: Study, section: str, **settings: Any) -> Study:
    """Return a study with other settings of a section of its analysis."""
    analysis = study.settings["analysis"]
    analysis = analysis | {section: analysis[section] | settings}
    return Study(study.name, study.path, study.settings | {"analysis": analysis})


class Input(SimpleNamespace):
    """The input of a job, by name."""

    def get(self, name: str) -> Any:
        return getattr(self, name, None)


def empty_file(path: Path, size: int) -> str:
    """Make a file of so many bytes, which take no room."""
    with path.open("wb") as file:
        file.truncate(size)
    return str(path)


def weights(folder: Path, size: int) -> Input:
    """Return the input of a job that reads weights of so many bytes."""
    return Input(weights=empty_file(folder / "weights.safetensors", size))


def split(folder: Path, images: int, size: int) -> str:
    """Return the artefact of a split of so many images."""
    # Labels, places and sums are of 24 bytes for an image; there is a header besides.
    return empty_file(folder / f"split{images}.safetensors", images * (3 * size**2 + 24) + 1000)


def network(study: Study, name: str) -> nn.Module:
    """Build a model of a study, without weights."""
    model = study.model(name)
    data = study.dataset(model["data"])
    built = build_empty(model["family"], model["arch"], data["classes"], data["image_size"])
    return built.eval().requires_grad_(False)


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_every_job_is_short_or_says_what_it_takes() -> None:
    for name, rule in rules().items():
        if rule.parent is None and "script:" in rule.text:
            local = "localrule: True" in rule.text
            asks = "mem_mb=" in rule.text and "runtime=" in rule.text
            assert local != asks, name


def test_rules_that_inherit_are_as_local_as_what_they_inherit_from() -> None:
    # Snakemake itself hands on neither `localrule`, nor resources that it finds replaced.
    for name, rule in rules().items():
        if rule.parent is not None:
            local = ["localrule: True" in each.text for each in (rule, rules()[rule.parent])]
            assert len(set(local)) == 1, name
            # What is inherited asks for both.
            asked = rule.part("resources")
            assert ("mem_mb=" in asked) == ("runtime=" in asked), name


def test_what_needs_the_network_is_local() -> None:
    fetching = {name: rule.text for name, rule in rules().items() if name.startswith("fetch_")}
    assert {"fetch_archive", "fetch_checkpoint", "fetch_snapshot"} <= fetching.keys()
    assert all("localrule: True" in text for text in fetching.values())


def test_what_runs_a_model_may_have_a_gpu_and_nothing_else() -> None:
    for name, rule in rules().items():
        if rule.parent is None:
            assert ("gpu=gpu_of" in rule.text) == ("device=lambda" in rule.text), name


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 1), ("cpu", 0), ("auto", 0)])
def test_a_gpu_is_asked_for_where_the_study_demands_one(device: str, gpus: int) -> None:
    study = Study("mini", MINI.path, MINI.settings | {"device": device})
    assert functions(study)["gpu_of"](VIT) == gpus


def test_requests_double_at_every_attempt(tmp_path: Path) -> None:
    ask, given = functions(), weights(tmp_path, 10_000_000)
    for function in (ask["memory_of_passes"], ask["minutes_of"](ask["passes_of_shard"])):
        first, second, third = (function(VIT, given, attempt) for attempt in (1, 2, 3))
        assert (second, third) == (2 * first, 4 * first)


def test_every_number_of_passes_is_of_the_study(tmp_path: Path) -> None:
    ask, analysis = functions(), MINI.settings["analysis"]
    given = Input(images=split(tmp_path, 2000, 32), blocks=blocks(MINI, "vit", tmp_path))
    points, rows = analysis["landscape"]["points"], analysis["landscape"]["rows_per_job"]
    hessian = analysis["hessian"]
    of_hessian = hessian["batches_per_job"] * hessian["batch_size"] * ask["PASSES_OF_A_PRODUCT"]
    passes = {
        "shard": 256,
        "prediction": 2000,
        "fit": analysis["fit"]["images"],
        "noise": 500 * (1 + 9 * 3),
        # 24 units and the stem.
        "lesions": 1000 * (1 + 25 * ask["SHARE_OF_LESION"]),
        "robustness": 200 * (1 + 15 * 5),
        "landscape": analysis["augmented"]["images"] * points * rows,
        "largest": of_hessian * hessian["iterations"],
        "density": of_hessian * hessian["density_probes"] * hessian["density_steps"],
    }
    for name, expected in passes.items():
        assert ask[f"passes_of_{name}"](VIT, given) == pytest.approx(expected, rel=0.01), name


def test_no_more_images_are_asked_time_for_than_there_are(tmp_path: Path) -> None:
    study = changed(MINI, "frequency_noise", images=None)
    few, many = (Input(images=split(tmp_path, images, 32)) for images in (100, 50_000))
    passes = functions(study)["passes_of_noise"]
    found = [passes(VIT, given) for given in (few, many)]
    assert found == pytest.approx([100 * 28, 50_000 * 28], rel=0.02)
    # The study says 500.
    assert functions()["passes_of_noise"](VIT, many) == 500 * 28


def blocks(study: Study, name: str, folder: Path) -> str:
    """Write the table of blocks of a model."""
    model, family = study.model(name), find_family(study.model(name)["family"])
    built = network(study, name)
    size = study.dataset(model["data"])["image_size"]
    path = folder / f"blocks_{name}.parquet"
    find_table("blocks").write(block_table(name, built, family.cut_points(built), size), path)
    return str(path)


@pytest.mark.parametrize(
    ("study", "name"),
    [(study, name) for study in (MINI, PAPER) for name in study.settings["models"]],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_products_of_a_pass_are_those_that_torch_counts(
    study: Study, name: str, tmp_path: Path
) -> None:
    model = network(study, name)
    size = study.dataset(study.model(name)["data"])["image_size"]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(1, 3, size, size, device="meta"))
    # It counts sums beside products.
    products = counter.get_total_flops() / 2
    given = weights(tmp_path, 4 * parameters(model))
    asked = functions(study)["products_of_pass"](SimpleNamespace(model=name), given)
    assert asked == pytest.approx(products, rel=0.25)


def test_a_family_that_is_new_has_the_products_of_a_transformer(tmp_path: Path) -> None:
    models = {"vit": MINI.model("vit"), "new": MINI.model("vit") | {"family": "new"}}
    study = Study("mini", MINI.path, MINI.settings | {"models": models})
    products, given = functions(study)["products_of_pass"], weights(tmp_path, 1_400_000)
    new, known = (products(SimpleNamespace(model=name), given) for name in ("new", "vit"))
    assert new == known


# Seconds of one image on one thread of the machine that rates are of, an AMD EPYC of two cores:
# processor time of the scripts but for their start, on 64 or 128 images. A pass; all lesions of an
# image; a point of a landscape, in bfloat16.
SECONDS = {
    "resnet_50": (0.032, 0.147, 0.0110),
    "vit_ti": (0.047, 0.584, 0.0256),
    "pit_ti": (0.026, 0.257, 0.0175),
    "swin_ti": (0.043, 0.439, 0.0148),
}


def work_of(name: str) -> dict[str, tuple[str, float]]:
    """Return how many passes each kind of job asks time for, and how long it takes here."""
    one, lesions, point = SECONDS[name]
    return {
        "passes_of_shard": 250 * one,
        "passes_of_prediction": 10_000 * one,
        "passes_of_noise": 10_000 * 28 * one,
        "passes_of_lesions": 10_000 * lesions,
        "passes_of_robustness": 10_000 * 6 * one,
        # Three rows of 21 points.
        "passes_of_landscape": 1024 * 63 * point,
    }


@pytest.mark.parametrize("name", SECONDS)
def test_models_of_the_paper_have_the_time_that_they_take(name: str, tmp_path: Path) -> None:
    ask, wildcards = functions(PAPER), SimpleNamespace(model=name, split="test", part="0")
    given = weights(tmp_path, 4 * parameters(network(PAPER, name)))
    given.images, given.blocks = split(tmp_path, 10_000, 32), blocks(PAPER, name, tmp_path)
    for passes, seconds in work_of(name).items():
        minutes = ask["minutes_of"](ask[passes])(wildcards, given, 1) - ask["LEAST_MINUTES"]
        # Requests are of whole minutes.
        assert 2 * seconds <= 60 * minutes <= 10 * seconds + 60, passes


def test_a_large_model_has_the_time_that_it_takes_on_paper(tmp_path: Path) -> None:
    """ViT-B/16 on all of ImageNet's validation images: 9.8 hours, by docs/scale.md."""
    model = PAPER.model("vit_tiny_imagenet") | {"arch": {"name": "vit_base_patch16_224"}}
    study = Study("large", PAPER.path, PAPER.settings | {"models": {"large": model}})
    ask, given = functions(study), weights(tmp_path, 346_300_000)
    given.images = split(tmp_path, 50_000, 224)
    wildcards = SimpleNamespace(model="large", split="test")
    minutes = ask["minutes_of"](ask["passes_of_prediction"])(wildcards, given, 1)
    assert 2 * 9.8 <= minutes / 60 <= 10 * 9.8


def imagenet(images: int | None) -> Study:
    """Return a study of some images of ImageNet, or of all."""
    data = PAPER.dataset("imagenet") | {"splits": {"test": {"images": images}}}
    return Study("imagenet", PAPER.path, PAPER.settings | {"data": {"imagenet": data}})


PIXELS = SimpleNamespace(dataset="imagenet", split="test", corruption="glass_blur")


def test_all_images_of_imagenet_have_the_time_to_be_corrupted(tmp_path: Path) -> None:
    given = Input(images=split(tmp_path, 50_000, 224))
    minutes = functions(imagenet(None))["minutes_of_corrupting"](PIXELS, given, 1)
    # Of 4 images, at all severities, each took 0.15 seconds.
    assert 2 * 50_000 * 0.15 <= 60 * minutes <= 10 * 50_000 * 0.15


def test_few_small_images_have_the_least_time(tmp_path: Path) -> None:
    ask, least = functions(), functions()["LEAST_MINUTES"]
    small = SimpleNamespace(dataset="shapes32", split="test", model="vit")
    given = Input(images=split(tmp_path, 2000, 32))
    assert least <= ask["minutes_of_corrupting"](small, given, 1) <= least + 2
    assert least <= ask["minutes_of_building"](small, 1) <= least + 2
    assert least <= ask["minutes_of_augmenting"]("augmented")(small, 1) <= least + 2


def test_images_without_a_model_have_time_by_their_pixels() -> None:
    least = functions()["LEAST_MINUTES"]
    # A photograph of 500x400 pixels took 2.5 ms; one of 4000x3000 took 0.13 s, 50,000 two hours.
    building = functions(imagenet(None))["minutes_of_building"]
    assert 60 * (building(PIXELS, 1) - least) >= 2 * 50_000 * 0.0025
    assert building(PIXELS, 3) >= 50_000 * 0.13 / 60
    study = changed(PAPER, "fit", images=1_000_000)
    augmenting = functions(study)["minutes_of_augmenting"]("fit")
    # An image of 32 pixels took 0.11 ms, one of 224 pixels 0.83.
    for name, seconds in {"vit_ti": 0.000_11, "vit_tiny_imagenet": 0.000_83}.items():
        minutes = augmenting(SimpleNamespace(model=name), 1) - least
        assert 2 * 1e6 * seconds <= 60 * minutes, name
    few = functions(imagenet(10_000))["minutes_of_building"](PIXELS, 1)
    assert building(PIXELS, 1) - least == pytest.approx(5 * (few - least), abs=5)


def test_training_has_time_by_the_images_that_there_are(tmp_path: Path) -> None:
    ask, least = functions(), functions()["LEAST_MINUTES"]
    whole, half = (Input(train=split(tmp_path, images, 32)) for images in (20_000, 10_000))
    minutes = [ask["minutes_of_training"](VIT, given, 1) - least for given in (whole, half)]
    assert minutes[0] == pytest.approx(2 * minutes[1], abs=1)
    assert ask["memory_of_training"](VIT, 1) > 1000


# Megabytes that scripts took at their peak: batches of 64 images through ViT-Ti, Swin-Ti and the
# ViT of mini; lesions of as many through ViT-Ti, ResNet-50, Swin-Ti, PiT-Ti and that ViT; points of
# a landscape, in float32 and of 32 images, of the same as the first.
@pytest.mark.parametrize(
    ("function", "size", "measured"),
    [
        ("memory_of_passes", 21_700_000, 700),
        ("memory_of_passes", 110_300_000, 1159),
        ("memory_of_passes", 1_400_000, 460),
        ("memory_of_lesions", 21_700_000, 1102),
        ("memory_of_lesions", 95_100_000, 1211),
        ("memory_of_lesions", 110_300_000, 1352),
        ("memory_of_lesions", 18_400_000, 859),
        ("memory_of_lesions", 1_400_000, 493),
        ("memory_of_landscape", 21_600_000, 606),
        ("memory_of_landscape", 110_200_000, 1251),
        ("memory_of_landscape", 1_400_000, 478),
    ],
)
def test_batches_have_the_memory_that_they_took(
    tmp_path: Path, function: str, size: int, measured: int
) -> None:
    ask, analysis = functions(), MINI.settings["analysis"]
    asked = ask[function](VIT, weights(tmp_path, size), 1) - ask["ON_A_NODE"]
    assert (analysis["batch_size"], analysis["landscape"]["batch_size"]) == (64, 32)
    assert measured * 1.1 <= asked <= measured * 2


def test_lesions_ask_for_the_memory_of_lesions() -> None:
    assert "memory_of_lesions" in rules()["measure_lesions"].part("resources")


def test_larger_batches_of_a_landscape_ask_for_more(tmp_path: Path) -> None:
    study = changed(MINI, "landscape", batch_size=128)
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
    making = {name for name, rule in rules().items() if line.search(rule.text)}
    grouped = dict(entry.split("=") for entry in profile("slurm")["groups"])
    assert grouped == dict.fromkeys(making, "shard")


def test_profiles_agree_where_no_site_differs() -> None:
    ours, theirs = profile("default"), profile("slurm")
    assert {key: theirs.get(key) for key in ours.keys() - {"cores"}} == {
        key: value for key, value in ours.items() if key != "cores"
    }
