"""The bundled weights of the study cifar100: complete, small, untouched, and trained as it says."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from vitscope.data.building import build
from vitscope.data.split import Split
from vitscope.networks.checkpoints.conversion import convert
from vitscope.networks.checkpoints.loading import load_model
from vitscope.settings.loading import BUNDLED_STUDIES, load_study
from vitscope.training.history import HISTORY

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "resources" / "checkpoints" / "cifar100"
STUDY = load_study(BUNDLED_STUDIES / "cifar100.yaml")
IMAGES = 1000


def files() -> list[Path]:
    return sorted(path for path in FOLDER.rglob("*.*") if path.name != "SHA256SUMS")


def test_all_files_are_listed_with_their_digests() -> None:
    lines = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    digests = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = {
        str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files()
    }
    assert digests == found


def test_they_are_those_that_the_study_names_and_no_others() -> None:
    entries = [e for name in STUDY.own_models for e in STUDY.models[name].files().values()]
    assert sorted(ROOT / entry["bundled"] for entry in entries) == files()


def test_they_take_12_megabytes_at_most() -> None:
    assert sum(path.stat().st_size for path in files()) <= 12e6


@pytest.mark.parametrize("model", STUDY.own_models)
def test_they_say_by_which_recipe_they_were_trained(model: str) -> None:
    """Which is that of the study: another training by it has the same settings."""
    recipe = json.loads(json.dumps(asdict(STUDY.recipe(model))))
    for path in sorted((FOLDER / model).rglob("*.safetensors")):
        with safe_open(path, "np") as file:
            facts = file.metadata()
        epoch = recipe["epochs"] if path.stem == "end" else int(path.stem.partition("_")[2])
        assert (facts["snapshot"], int(facts["epoch"])) == (path.stem, epoch)
        assert json.loads(facts["recipe"]) == recipe


@pytest.mark.parametrize("model", STUDY.own_models)
def test_histories_are_of_the_whole_training(model: str) -> None:
    history = HISTORY.read(FOLDER / model / "history.parquet")
    assert history["epoch"].tolist() == list(range(1, STUDY.recipe(model).epochs + 1))


@pytest.mark.nightly
def test_they_find_the_class_as_often_as_their_history_says(
    tmp_path: Path, cifar100_source: dict[str, str]
) -> None:
    """In float32, from the float16 of the files: within three standard errors of the share."""
    settings = asdict(STUDY.data["cifar100"]) | {"source": cifar100_source}
    build("cifar100", settings, "test", tmp_path / "test")
    split = Split(tmp_path / "test")
    for model in STUDY.own_models:
        entry, network = STUDY.models[model], STUDY.network(model)
        converted = tmp_path / f"{model}.safetensors"
        convert(ROOT / entry.checkpoint["bundled"], network, converted, label=model, origin="")
        loaded = load_model(converted, network).eval()
        found = 0
        with torch.inference_mode():
            for first in range(0, IMAGES, 250):
                rows = range(first, first + 250)
                logits = loaded(split.normalize(list(rows), entry.mean, entry.std))
                found += int((logits.argmax(1).numpy() == split.labels[np.array(rows)]).sum())
        history = HISTORY.read(FOLDER / model / "history.parquet")
        expected = history["test_accuracy"].iloc[-1]
        error = (expected * (1 - expected) / IMAGES) ** 0.5
        assert abs(found / IMAGES - expected) <= 3 * error
