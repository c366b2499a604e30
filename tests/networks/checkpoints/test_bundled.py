import json
from dataclasses import asdict
from pathlib import Path

import pytest
from safetensors import safe_open

from tests.helpers.studies import recorded_recipe
from vitscope.data.building import build_split_file
from vitscope.data.split import Split, select
from vitscope.files.whole import sha256_of
from vitscope.networks.checkpoints.conversion import convert, load_converted_model
from vitscope.networks.running.predictions import predict
from vitscope.package_data import ROOT
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.history import HISTORY
from vitscope.training.loop import evaluate_in_training

STUDIES = {name: load_study(BUNDLED_STUDIES / f"{name}.yaml") for name in ("mini", "cifar100")}
MINI, CIFAR100 = STUDIES.values()
MODELS = [
    (name, model)
    for name, study in STUDIES.items()
    for model in study.own_models
    if "bundled" in study.models[model].checkpoint
]

WITH_HISTORY = [each for each in MODELS if STUDIES[each[0]].models[each[1]].history]


FOLDERS = {name: ROOT / "resources" / "checkpoints" / name for name in STUDIES}


def bundled_files(study: str) -> set[str]:
    files = {path for path in FOLDERS[study].rglob("*.*") if path.is_file()}
    return {str(path.relative_to(FOLDERS[study])) for path in files} - {"SHA256SUMS"}


def named_files(study: str) -> set[str]:
    """Return what the study names: checkpoints, snapshots and histories."""
    models = STUDIES[study].models.values()
    entries = [entry for model in models for entry in model.files().values()]
    named = [ROOT / entry["bundled"] for entry in entries if "bundled" in entry]
    return {str(path.relative_to(FOLDERS[study])) for path in named}


@pytest.mark.parametrize(("study", "most"), [("mini", 20e6), ("cifar100", 56e6)])
def test_files_are_listed_with_their_digests_named_and_small(study: str, most: float) -> None:
    lines = (FOLDERS[study] / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    digests = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert list(digests) == sorted(bundled_files(study))
    assert {name: sha256_of(FOLDERS[study] / name) for name in digests} == digests
    # The study names all but the steps of its build-up.
    steps = {name for name in bundled_files(study) if name.startswith("buildup/step_")}
    assert named_files(study) | steps == bundled_files(study)
    assert sum((FOLDERS[study] / name).stat().st_size for name in bundled_files(study)) <= most


@pytest.mark.parametrize(("study", "model"), MODELS)
def test_snapshots_say_what_they_are_and_by_which_recipe(study: str, model: str) -> None:
    recipe = json.loads(json.dumps(asdict(STUDIES[study].recipe(model))))
    epochs = {"init": 0, "warmup": recipe["warmup_epochs"], "end": recipe["epochs"]}
    for path in sorted((FOLDERS[study] / model).rglob("*.safetensors")):
        with safe_open(path, "np") as file:
            facts = file.metadata()
        epoch = epochs.get(path.stem) or int(path.stem.partition("_")[2] or 0)
        assert (facts["snapshot"], int(facts["epoch"])) == (path.stem, epoch)
        # Of mini, what was trained before recipes had all of today's keys.
        assert study == "mini" or recorded_recipe(facts) == recipe


@pytest.mark.parametrize(("study", "model"), WITH_HISTORY)
def test_histories_are_of_the_whole_training(study: str, model: str) -> None:
    history = HISTORY.read(FOLDERS[study] / model / "history.parquet")
    assert history["epoch"].tolist() == list(range(1, STUDIES[study].recipe(model).epochs + 1))
    if study == "mini":
        assert history[["radius", "angle"]].iloc[-1].tolist() == [0, 0]
        assert history["radius"].between(0, 1).all()


def loaded(study: Study, model: str, folder: Path):
    network, source = study.network(model), ROOT / study.models[model].checkpoint["bundled"]
    convert(source, network, folder / model, label=model, origin="bundled")
    return load_converted_model(folder / model, network)


@pytest.fixture(scope="module")
def test_splits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Split]:
    folder = tmp_path_factory.mktemp("data")
    for name, settings in MINI.data.items():
        build_split_file(name, asdict(settings), "test", folder / name)
    return {name: Split(folder / name) for name in MINI.data}


@pytest.mark.nightly
@pytest.mark.parametrize("model", [model for study, model in MODELS if study == "mini"])
def test_models_of_mini_are_small_and_find_the_class(
    test_splits: dict[str, Split], tmp_path: Path, model: str
) -> None:
    entry, network = MINI.models[model], loaded(MINI, model, tmp_path)
    assert sum(parameter.numel() for parameter in network.parameters()) <= 500_000
    found = evaluate_in_training(network, test_splits[entry.data], entry.mean, entry.std)[
        "test_accuracy"
    ]
    # On 6 % of the images a ViT learns, and less than on all of them.
    low, high = (0.50, 0.80) if model == "vit_6" else (0.70, 0.97)
    assert low <= found <= high


@pytest.mark.nightly
@pytest.mark.parametrize("model", [model for study, model in WITH_HISTORY if study == "cifar100"])
def test_models_of_cifar100_find_the_class_as_often_as_their_history_says(
    tmp_path: Path, cifar100_source: dict[str, str], model: str
) -> None:
    """In float32, from the float16 of the files: within three standard errors of the share."""
    settings = asdict(CIFAR100.data["cifar100"]) | {"source": cifar100_source}
    build_split_file("cifar100", settings, "test", tmp_path / "test")
    split, entry = Split(tmp_path / "test"), CIFAR100.models[model]
    rows = select(len(split), 1000, 0)
    batches = split.batches(rows, 250, entry.mean, entry.std)
    found = predict(loaded(CIFAR100, model, tmp_path), batches, split.labels[rows])
    history = HISTORY.read(FOLDERS["cifar100"] / model / "history.parquet")
    expected = history["test_accuracy"].iloc[-1]
    error = (expected * (1 - expected) / len(rows)) ** 0.5
    assert abs((found["label"] == found["prediction"]).mean() - expected) <= 3 * error
