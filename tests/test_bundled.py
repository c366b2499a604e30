"""The bundled weights of the mini study: complete, small, untouched, and trained."""

import hashlib
from pathlib import Path

import pytest

from vitscope import checkpoints
from vitscope.data.artefact import Split, build
from vitscope.studies import BUNDLED_STUDIES, Study, load_study
from vitscope.tensorfile import TensorFile
from vitscope.training import accuracy

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "resources" / "checkpoints" / "mini"
SNAPSHOTS = ("init", "warmup", "end")


@pytest.fixture(scope="module")
def study() -> Study:
    return load_study(BUNDLED_STUDIES / "mini.yaml")


@pytest.fixture(scope="module")
def test_split(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Split:
    path = tmp_path_factory.mktemp("data") / "test.safetensors"
    build("shapes32", study.dataset("shapes32"), "test", path)
    return Split(path)


def files(study: Study) -> list[str]:
    return [f"{model}/{moment}.safetensors" for model in study.models() for moment in SNAPSHOTS]


def test_all_snapshots_are_there_with_their_digests(study: Study) -> None:
    lines = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    digests = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert sorted(digests) == sorted(files(study))
    for name, digest in digests.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name


def test_they_take_16_megabytes_at_most(study: Study) -> None:
    assert sum((FOLDER / name).stat().st_size for name in files(study)) <= 16e6


@pytest.mark.parametrize("model", ["resnet", "vit", "pit", "swin", "alternet", "mixer"])
def test_trained_models_are_small_and_find_the_class(
    study: Study, test_split: Split, tmp_path: Path, model: str
) -> None:
    settings, data = study.model(model), study.dataset("shapes32")
    network = settings | {key: data[key] for key in ("classes", "image_size")}
    converted = tmp_path / "model.safetensors"
    source = ROOT / settings["checkpoint"]["bundled"]
    checkpoints.convert(source, network, converted, label=model, origin="bundled")
    loaded = checkpoints.load_model(converted, network)
    assert sum(parameter.numel() for parameter in loaded.parameters()) <= 500_000
    found = accuracy(loaded, test_split, settings["mean"], settings["std"])
    assert 0.70 <= found <= 0.97


@pytest.mark.parametrize("model", ["resnet", "vit", "pit", "swin", "alternet", "mixer"])
def test_snapshots_say_what_they_are(study: Study, model: str) -> None:
    moments = [TensorFile(FOLDER / model / f"{moment}.safetensors") for moment in SNAPSHOTS]
    assert [file.metadata["snapshot"] for file in moments] == list(SNAPSHOTS)
    recipe = study.recipe(model)
    epochs = [int(file.metadata["epoch"]) for file in moments]
    assert epochs == [0, recipe["warmup_epochs"], recipe["epochs"]]
