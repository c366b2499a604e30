import re
from copy import deepcopy
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from tests.helpers import refusals
from tests.helpers.jobs import values_of
from tests.helpers.studies import BUNDLED, bundled
from vitscope.errors import VitscopeError
from vitscope.jobs.training import TRAINED_ON, augmentation_recipe_of_job
from vitscope.measures import registry
from vitscope.networks.building.family import family_names
from vitscope.settings.faults import find_faults_of_section
from vitscope.settings.keys import NOT_AUGMENTED, Config
from vitscope.settings.section import schema_of_section
from vitscope.settings.study import Study
from vitscope.studies.loading import (
    BUNDLED_STUDIES,
    analysis_schema,
    find_studies,
    load_study,
    study_schema,
)

STUDY: dict[str, Any] = {
    "title": "own",
    "data": {
        "generated": {
            "source": {"kind": "shapes32"},
            "classes": 10,
            "image_size": 32,
            "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.25, 0.25],
            "splits": {"train": {}, "test": {"images": 100}},
        },
        "folder": {
            "source": {"kind": "folder", "path": "images/{split}"},
            "classes": 5,
            "image_size": 32,
            "mean": [0.1, 0.2, 0.3],
            "std": [1, 1, 1],
            "splits": {"test": {}},
        },
    },
    "models": {
        "net": {
            "family": "resnet",
            "arch": {"depth": 18},
            "data": "generated",
            "checkpoint": {"path": "net.pth"},
        },
        "former": {
            "label": "Former",
            "family": "vit",
            "arch": {"name": "vit_tiny_patch16_224"},
            "data": "folder",
            "std": [0.5, 0.5, 0.5],
            "checkpoint": {"url": "https://host/former.pth"},
            "training": {"epochs": 3},
        },
        "unseen": {
            "family": "mixer",
            "arch": {"patch_size": 4, "num_blocks": 2, "embed_dim": 8},
            "data": "generated",
            "checkpoint": {"timm": "mixer_b16_224.miil_in21k"},
        },
    },
    "training": {"epochs": 10, "batch_size": 100, "learning_rate": 0.001},
    "figures": {
        "one": {"kind": "feature_variance", "models": ["former", "net"]},
        "two": {
            "kind": "feature_variance",
            "models": ["net"],
            "published": {"file": "fig9.csv", "series": {"net": "ResNet"}},
        },
    },
}
MISSING = object()


def changed(study: dict[str, Any], changes: dict[str, object]) -> dict[str, Any]:
    """Return a study with other values at dotted keys; `MISSING` takes a key away."""
    study = deepcopy(study)
    for dotted, value in changes.items():
        *parents, last = dotted.split(".")
        place = study
        for part in parents:
            place = place.setdefault(part, {})
        if value is MISSING:
            del place[last]
        else:
            place[last] = value
    return study


def with_changes(**changes: object) -> dict[str, Any]:
    return changed(STUDY, changes)


def written(folder: Path, settings: object, name: str = "own.yaml") -> Path:
    path = folder / name
    path.write_text(
        settings if isinstance(settings, str) else yaml.safe_dump(settings, sort_keys=False)
    )
    return path


def loaded(folder: Path, **changes: object) -> Study:
    return load_study(written(folder, with_changes(**changes)))


def refusal(folder: Path, **changes: object) -> str:
    """Return the sentence for a changed study, without the name of its file."""
    path = written(folder, with_changes(**changes))
    message = refusals.refusal(load_study, path)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_a_model_has_the_classes_of_its_data_set_or_its_own(tmp_path: Path) -> None:
    study = loaded(tmp_path, **{"models.former.classes": None, "models.unseen.classes": 1000})
    assert [model.classes for model in study.models.values()] == [10, None, 1000]
    assert [study.network(name)["classes"] for name in study.models] == [10, None, 1000]
    study = loaded(tmp_path, **{"data.folder.classes": None})
    assert [model.classes for model in study.models.values()] == [10, None, 10]


def of_classes(kind: str) -> bool:
    """Tell whether figures of a kind are of what a network says of classes."""
    tables = {*registry.kinds()[kind].tables} & {*registry.names()}
    measures = map(registry.declared, tables)
    return any(registry.declared(each.parts_of or each.name).needs_classes for each in measures)


WHAT_IT_TAKES = {
    "models.former.data": "generated",
    "models.former.classes": None,
    "models.former.snapshots": {"init": {"path": "a"}, "warmup": {"path": "b"}},
    "models.former.history": {"path": "h"},
    "data.generated.splits.conflict": {"images": 10},
    "models.unseen.data": "generated",
    "models.unseen.checkpoint": {"path": "c"},
    "figures": {"one": {"kind": "cka", "models": ["net"]}},
}


@pytest.mark.parametrize("kind", registry.kinds())
def test_figures_of_classes_are_refused_for_a_network_without(tmp_path: Path, kind: str) -> None:
    shown = {
        1: {"models": ["former"]},
        2: {"pairs": [["former", "unseen"]]},
        3: {"triples": [["former", "unseen", "net"]]},
    }[registry.declared(registry.kinds()[kind].measure).models]
    if registry.kinds()[kind].all_pairs:
        shown = {"models": ["former", "unseen"]}
    changes = WHAT_IT_TAKES | {"figures.shown": {"kind": kind, **shown}}
    if not of_classes(kind):
        loaded(tmp_path, **changes)
        return
    assert refusal(tmp_path, **changes) == (
        f"figures.shown: a figure of the kind '{kind}' needs what a model says of classes, and "
        "models.former has no classifier (`classes: null`): leave the model out of the figure, or "
        "give it a checkpoint that tells the classes of its data set apart."
    )


def test_a_model_that_is_trained_tells_the_classes_apart(tmp_path: Path) -> None:
    study = loaded(tmp_path, **{"models.net.classes": 1000})
    with pytest.raises(VitscopeError, match="the model is trained to tell them apart"):
        values_of("train_model", study, model="net")


def test_what_is_read_of_a_file_does_not_decide_which_file_it_is(tmp_path: Path) -> None:
    place = {"url": "https://host/a.pth", "sha256": "a" * 64}
    entry = place | {"key": "ema.model", "ignore": ["decoder.*", "mask_token"]}
    study = loaded(
        tmp_path, **{"models.net.checkpoint": entry, "models.net.snapshots.init": dict(entry)}
    )
    assert study.models["net"].checkpoint == entry
    assert values_of("fetch_checkpoint", study, model="net")["checkpoint"] == place
    assert values_of("fetch_checkpoint", study, model="net", snapshot="init")["checkpoint"] == place
    assert study.snapshot("net", "init") == entry


BETWEEN = "cka_between"


def pair_on(**changed: object) -> dict[str, object]:
    """Changes to a study: a pair, of which one model is on the images of another data set."""
    other = {**STUDY["data"]["generated"], **changed}
    figure = {"kind": BETWEEN, "pairs": [["unseen", "net"]]}
    return {"data.other": other, "models.unseen.data": "other", "figures.one": figure}


def test_images_of_a_pair_may_look_different(tmp_path: Path) -> None:
    looks = {"image_size": 64, "resize": 64, "interpolation": "bilinear", "mean": [0, 0, 0]}
    named = {"splits": {"test": {"images": 100}}, "class_names": list("abcdefghij")}
    study = loaded(tmp_path, **pair_on(**looks, **named))
    assert study.figures["one"].models == ["unseen", "net"]
    assert study.models_of(BETWEEN) == ["net", "unseen"]
    assert study.subjects_of(BETWEEN) == ["unseen+net"]
    assert study.groups() == {"unseen+net"}


@pytest.mark.parametrize(
    "changed",
    [
        {"source": {"kind": "shapes32", "seed": 1}},
        {"splits": {"test": {"images": 99}}},
        {"splits": {"test": {"images": 100, "seed": 3}}},
    ],
)
def test_images_of_a_pair_are_the_same(tmp_path: Path, changed: dict[str, object]) -> None:
    message = refusal(tmp_path, **pair_on(**changed))
    assert "found 'unseen' on data.other and 'net' on data.generated" in message


def test_tables_are_of_the_models_or_of_the_pairs_that_are_shown(tmp_path: Path) -> None:
    figures = {
        "figures.one": {"kind": BETWEEN, "pairs": [["unseen", "net"], ["net", "unseen"]]},
        "figures.two": {"kind": BETWEEN, "pairs": [["net", "unseen"]]},
        "figures.three": {"kind": "cka", "models": ["former"]},
    }
    study = loaded(tmp_path, **figures)
    assert study.subjects_of(BETWEEN) == ["unseen+net", "net+unseen"]
    assert study.subjects_of("cka") == ["former"]
    assert study.subjects_of("blocks") == ["net", "former", "unseen"]
    assert study.figures["one"].subjects("blocks") == ["unseen", "net"]
    assert study.figures["one"].subjects(BETWEEN) == ["unseen+net", "net+unseen"]


ALL_PAIRS = "similarity_matrix"


def test_each_two_models_of_a_matrix_are_a_pair(tmp_path: Path) -> None:
    models = ["unseen", "net", "former"]
    changes = {"models.former.data": "generated"}
    changes["figures.one"] = {"kind": ALL_PAIRS, "models": models}
    study = loaded(tmp_path, **changes)
    assert study.subjects_of(BETWEEN) == ["unseen+net", "unseen+former", "net+former"]
    assert study.figures["one"].models == models


@pytest.mark.parametrize(
    ("given", "found"),
    [({"models": ["net"]}, "one model"), ({"pairs": [["net", "former"]]}, "pairs")],
)
def test_a_matrix_takes_two_models_or_more(
    tmp_path: Path, given: dict[str, object], found: str
) -> None:
    assert refusal(tmp_path, **{"figures.one": {"kind": ALL_PAIRS, **given}}) == (
        f"figures.one: found '{found}', allowed: 'models', two or more, each two of which figures "
        "of 'similarity_matrix' show."
    )


def test_models_of_a_matrix_are_measured_on_the_same_images(tmp_path: Path) -> None:
    changes = pair_on(splits={"test": {"images": 99}})
    changes["figures.one"] = {"kind": ALL_PAIRS, "models": ["net", "unseen"]}
    message = refusal(tmp_path, **changes)
    assert message.startswith("figures.one.models: found 'net' on data.generated and 'unseen' on")


def test_the_folder_of_results_says_who_is_trained_here(tmp_path: Path) -> None:
    entry = {"path": "elsewhere/own/training/former/end.safetensors"}
    path = written(tmp_path, with_changes(**{"models.former.checkpoint": entry}))
    config = {"study": "own", "studies_dir": str(path)}
    assert find_studies(config, WHERE)["own"]
    with pytest.raises(VitscopeError, match="trained by this workflow, which elsewhere/own"):
        find_studies({**config, "pathvars": {"results": "elsewhere"}}, WHERE)


def test_a_snapshot_that_is_not_there_is_refused(tmp_path: Path) -> None:
    study = loaded(tmp_path, **{"models.net.snapshots": {"init": {"path": "init.pth"}}})
    with pytest.raises(VitscopeError, match=r"models\.net\.snapshots: found 'warm', allowed: init"):
        study.snapshot("net", "warm")


@pytest.mark.parametrize("kind", ["landscape", "fit"])
def test_a_loss_needs_a_recipe_and_images_to_augment(tmp_path: Path, kind: str) -> None:
    shown = {"kind": kind, "models": ["net"]}
    assert refusal(tmp_path, **{"figures.loss": shown, "training": MISSING}) == (
        "figures.loss shows a loss, and nothing says of what training: add `loss: {weight_decay: "
        "..., augment: none}` for networks that were trained elsewhere, or the key 'training'."
    )
    former = shown | {"models": ["former"]}
    assert refusal(tmp_path, **{"figures.loss": former}) == (
        "analysis.augmented.split, for models.former on data.folder in figures.loss: found "
        "'train', allowed: test. Declare a split 'train' in data.folder, or write `analysis: "
        "{augmented: {split: test}}`."
    )


@pytest.mark.parametrize("kind", ["landscape", "fit"])
def test_one_refusal_says_all_that_a_loss_lacks(tmp_path: Path, kind: str) -> None:
    shown = {"kind": kind, "models": ["former"]}
    lacking: dict[str, Any] = {
        "figures.loss": shown,
        "data.folder.splits": {"test": {"images": 100}},
    }
    keys = {"augmented": {"split": "test", "images": 100}}
    example = "{augmented: {split: test, images: 100}}"
    if kind == "fit":
        keys = {"augmented": {"split": "test"}, "fit": {"images": 100}}
        example = "{augmented: {split: test}, fit: {images: 100}}"
    said = refusal(tmp_path, **lacking, training=MISSING)
    assert "nothing says of what training: add `loss: {weight_decay: ..., augment: none}`" in said
    assert said.endswith(
        f" Declare a split 'train' in data.folder, or write `analysis: {example}`."
    )
    # With what it names, the study is as it should be; with a recipe, images are drawn repeatedly.
    added = {f"analysis.{name}": each for name, each in keys.items()}
    clean = {"loss": {"weight_decay": 0.1, "augment": "none"}, "training": MISSING}
    assert loaded(tmp_path, **lacking, **added, **clean).clean
    assert refusal(tmp_path, **lacking).endswith("`analysis: {augmented: {split: test}}`.")


@pytest.mark.parametrize("kind", ["landscape", "fit"])
def test_a_loss_may_be_described_without_a_recipe(tmp_path: Path, kind: str) -> None:
    described = {"figures.loss": {"kind": kind, "models": ["former"]}, "training": MISSING}
    described |= {"loss": {"weight_decay": 0.1}, "analysis.augmented.split": "test"}
    study = loaded(tmp_path, **described)
    assert study.weight_decay("former") == 0.1
    assert study.clean
    few = {"data.folder.splits.test": {"images": 30}}
    key, default = ("fit.images", 2000) if kind == "fit" else ("augmented.images", 1024)
    assert refusal(tmp_path, **described, **few) == (
        f"analysis.{key}, for models.former in figures.loss: found {default}, allowed: at most 30, "
        "the images of data.folder.splits.test: without augmentation each is taken once."
    )
    loaded(tmp_path, **described, **few, **{"loss.augment": {"flip": True}})


def test_of_a_loss_nothing_is_augmented_that_is_not_listed(tmp_path: Path) -> None:
    study = loaded(tmp_path, loss={"weight_decay": 0, "augment": {"flip": True}})
    augment = study.loss.augment
    assert {key: value for key, value in augment.items() if value} == {
        "batch_size": 64,
        "mixing_probability": 1,
        "erased": "noise",
        "border": "reflection",
        "flip": True,
    }
    # Which images it has seen is known, since it is trained here.
    assert augmentation_recipe_of_job(study, "net") == augment | {"images": None, "seed": 0}
    assert augment.keys() <= {*TRAINED_ON, *NOT_AUGMENTED}
    alike = values_of("augment_images", study, model="net", alike="yes")
    assert alike["recipe"] == augmentation_recipe_of_job(study, "net")
    assert not study.clean
    assert study.weight_decay("net") == 0


def test_a_network_of_ones_own_is_found_beside_the_study_and_its_code_decides(
    tmp_path: Path,
) -> None:
    (tmp_path / "nets").mkdir()
    # It may not run.
    (tmp_path / "nets" / "mine.py").write_text("import parts\nraise SystemExit\ndef net(n): ...\n")
    (tmp_path / "nets" / "parts.py").write_text("")
    changes = {
        "models.net.family": "python",
        "models.net.arch": {"file": "nets/mine.py", "make": "net", "n": 3},
        "models.net.checkpoint": {"made": True},
    }
    study = loaded(tmp_path, **changes)
    assert study.models["net"].label == "net (untrained?)"
    assert loaded(tmp_path, **changes, **{"models.net.label": "Mine"}).models["net"].label == "Mine"
    network = study.network("net")
    assert network["arch"]["file"] == str(tmp_path / "nets" / "mine.py")
    assert loaded(tmp_path, **changes).network("net") == network
    # The record of a run says the study as it was written.
    assert study.settings["models"]["net"]["arch"] == changes["models.net.arch"]
    (tmp_path / "nets" / "parts.py").write_text("x = 1")
    edited = loaded(tmp_path, **changes)
    assert edited.network("net")["arch"] | {"code": network["arch"]["code"]} == network["arch"]
    assert edited.network("net") != network
    assert edited.network("former") == study.network("former")


def places(value: Any) -> list[tuple[Any, ...]]:
    """List where in nested settings a value stands."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, ...]] = []
    for key, part in inner:
        found.append((key,))
        if isinstance(part, dict | list):
            found += [(key, *rest) for rest in places(part)]
    return found


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@hypothesis.settings(max_examples=60)
@hypothesis.given(place=st.sampled_from(places(STUDY)), value=ANYTHING)
def test_anything_anywhere_is_a_study_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: object
) -> None:
    study = deepcopy(STUDY)
    holder: Any = study
    for part in place[:-1]:
        holder = holder[part]
    holder[place[-1]] = value
    path = written(tmp_path_factory.getbasetemp(), study)
    try:
        load_study(path)
    except VitscopeError as error:
        message = str(error)
        assert message.startswith(str(path))
        assert message.endswith((".", "'?"))
        assert "\n" not in message


def test_the_name_of_a_study_must_fit_a_path(tmp_path: Path) -> None:
    path = written(tmp_path, STUDY, "a b.yaml")
    assert refusals.refusal(load_study, path) == (
        f"{path}: name of the file: found '{path.stem}', allowed: letters, digits, '-' and '_', "
        "the first a letter or a digit, and no end that repeats."
    )


def test_a_split_of_conflicting_cues_is_needed_where_it_is_shown_alone(tmp_path: Path) -> None:
    shapes = {"kind": "shape_texture", "models": ["net"]}
    changes = {"figures.shapes": shapes, "data.generated.splits.conflict": {}}
    study = loaded(tmp_path, **changes)
    assert study.models_of("shape_texture") == ["net"]
    splits = {measure: registry.declared(measure).split(study) for measure in registry.names()}
    assert splits["shape_texture"] == "conflict"
    assert splits["classification"] == splits["feature_variance"] == "test"


def test_every_default_of_the_schema_is_filled_in(tmp_path: Path) -> None:
    study = loaded(tmp_path)
    settings = study.settings
    for key, schema in analysis_schema()["properties"].items():
        if schema.get("type") != "object":
            assert settings["analysis"][key] == schema["default"], key
            continue
        defaults = {name: inner["default"] for name, inner in schema["properties"].items()}
        assert settings["analysis"][key] == defaults, key
        declared = registry.declared(key).settings if key in registry.names() else None
        section = study.section(key, declared) if declared else getattr(study.analysis, key)
        assert asdict(section) == defaults, key
    assert settings["data"]["generated"]["splits"] == {
        "train": {"images": None, "seed": 0, "stored": True},
        "test": {"images": 100, "seed": 0, "stored": True},
    }
    # The key of a kind of source is not put where it means nothing.
    sources = {name: data["source"] for name, data in settings["data"].items()}
    assert sources["generated"] == {"kind": "shapes32", "seed": 0}
    assert "seed" not in sources["folder"]
    assert settings["models"]["unseen"]["training"] == {}
    assert "training" not in loaded(tmp_path, training=MISSING).settings


@pytest.mark.parametrize(
    ("split", "analysis", "shard_size", "images", "shards"),
    [(100, 256, 128, 100, 1), (None, 256, 128, 256, 2), (300, 256, 100, 256, 3), (9, 9, 4, 9, 3)],
)
def test_images_and_shards(
    tmp_path: Path, split: int | None, analysis: int, shard_size: int, images: int, shards: int
) -> None:
    changes = {
        "data.generated.splits.test.images": split,
        "analysis.images": analysis,
        "analysis.shard_size": shard_size,
    }
    study = loaded(tmp_path, **changes)
    assert (study.images("net"), study.shards("net")) == (images, shards)


def test_a_model_has_its_label_moments_and_recipe_or_the_usual_ones(tmp_path: Path) -> None:
    study = loaded(tmp_path)
    net, former = study.models["net"], study.models["former"]
    assert (net.label, net.mean, net.std) == ("net", (0.5,) * 3, (0.25,) * 3)
    assert (former.label, former.mean, former.std) == ("Former", (0.1, 0.2, 0.3), (0.5,) * 3)
    # And the recipe of the study, or changes of it.
    assert study.recipe("net") == study.training
    assert asdict(study.recipe("net")) == study.settings["training"]
    assert study.recipe("former") == replace(study.recipe("net"), epochs=3)
    assert study.recipe("net").epochs == 10


def test_a_recipe_that_is_missing_is_refused(tmp_path: Path) -> None:
    assert refusals.refusal(loaded(tmp_path, training=MISSING).recipe, "net") == (
        f"{tmp_path / 'own.yaml'}: top level: the key 'training' is missing: add it to train net."
    )


WHERE = "config/config.yaml or --config"


def default_study(**config: object) -> Study:
    studies = find_studies({"study": "mini", **config}, WHERE)
    return studies[studies.default]


config_refusal = partial(refusals.refusal, default_study)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_studies_are_valid(name: str) -> None:
    assert default_study(study=name).path == BUNDLED_STUDIES / f"{name}.yaml"


def test_a_study_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder = str(written(tmp_path, STUDY)), str(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", folder)
    # What is named twice is one study.
    twice = [file, folder, f"{folder}/link", str(BUNDLED_STUDIES)]
    for place in (folder, file, [folder], [file], twice, ".", "own.yaml", "~/own.yaml"):
        studies = find_studies({"study": "own", "studies_dir": place}, WHERE)
        assert studies["own"].path.samefile(file)
        assert set(studies) == {"own", *BUNDLED}


def test_lock_files_and_hidden_files_are_no_studies(tmp_path: Path) -> None:
    written(tmp_path, STUDY, "own.yml")
    for name in ("own.lock.yaml", ".#own.yaml", "notes.txt"):
        written(tmp_path, "- no study", name)
    studies = find_studies({"study": "own", "studies_dir": str(tmp_path)}, WHERE)
    assert studies["own"].path == tmp_path / "own.yml"


def test_a_command_reaches_the_studies_that_it_names_and_those_that_these_name(
    tmp_path: Path,
) -> None:
    snapshots = {"init": {"path": "results/next/training/net/init.safetensors"}}
    written(tmp_path, with_changes(**{"models.net.snapshots": snapshots}), "first.yaml")
    written(tmp_path, with_changes(description="as in results/last/run.yaml"), "next.yaml")
    written(tmp_path, STUDY, "last.yaml")
    written(tmp_path, STUDY, "other.yaml")
    studies = find_studies({"study": "other", "studies_dir": str(tmp_path)}, WHERE)
    assert studies.reached_from([]) == ["other"]
    assert studies.reached_from(["-n", "figures/next/all"]) == ["next", "other", "last"]
    for word in ("figures/first/all", "measure:study=first,model=net"):
        assert studies.reached_from([word]) == ["first", "other", "next", "last"]
    with pytest.raises(VitscopeError, match=r"'first' was not read.*--config study=first"):
        studies.refuse_unread("first")


def test_two_studies_of_a_name_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, STUDY, "mini.yaml")
    assert config_refusal(studies_dir=str(path)) == (
        f"{path}: there is a study 'mini' already, {BUNDLED_STUDIES / 'mini.yaml'}: "
        "rename one of the files."
    )


def test_a_study_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, STUDY)
    written(tmp_path, "{", "half.yml")
    found = find_studies({"study": "mini", "studies_dir": str(tmp_path)}, WHERE)
    assert set(found) == {"own", "half", *BUNDLED}
    assert found["own"] is found["own"]
    written(tmp_path, with_changes(device="gpu"))
    assert found["own"].device == "auto"
    # A fault in a study of a folder blocks it alone.
    for _ in range(2):
        with pytest.raises(VitscopeError, match="half"):
            found["half"]
    with pytest.raises(VitscopeError, match="found 'gpu'"):
        find_studies({"study": "mini", "studies_dir": str(path)}, WHERE)


def test_of_two_studies_of_a_name_in_folders_neither_can_be_used(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
        written(tmp_path / name, STUDY)
    places = [str(tmp_path / name) for name in "abc"]
    found = find_studies({"study": "mini", "studies_dir": places}, WHERE)
    assert found["mini"]
    with pytest.raises(VitscopeError, match="there is a study 'own' already"):
        found["own"]


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            {"study": "mimi"},
            f"study: found 'mimi', allowed: {', '.join(BUNDLED)}. Did you mean 'mini'?",
        ),
        ({"study": None}, "study: found nothing, allowed: text."),
        (
            {"studdies_dir": "x"},
            "studdies_dir: unknown key, allowed: container, keep_latents_gb, "
            "pathvars, studies_dir, study. Did you mean 'studies_dir'?",
        ),
        ({"studies_dir": 3}, "studies_dir: found 3, allowed: text or a list."),
        ({"studies_dir": ""}, "studies_dir: found '', allowed: text that is not empty."),
        ({"studies_dir": [3]}, "studies_dir.0: found 3, allowed: text."),
        (
            {"studies_dir": "/nowhere"},
            "studies_dir: found '/nowhere', allowed: a folder or file that exists.",
        ),
        (
            {"pathvars": {"result": "x"}},
            "pathvars.result: unknown key, allowed: benchmarks, figures, logs, results. "
            "Did you mean 'results'?",
        ),
    ],
)
def test_what_is_wrong_in_the_configuration_is_refused(
    config: dict[str, object], sentence: str
) -> None:
    assert config_refusal(**config) == f"{WHERE}: {sentence}"


def test_a_folder_without_studies_is_refused(tmp_path: Path) -> None:
    assert config_refusal(studies_dir=str(tmp_path)) == (
        f"{WHERE}: studies_dir: found '{tmp_path}', which holds no study, allowed: a folder with "
        "files NAME.yaml."
    )


@pytest.mark.parametrize(
    "schema", [study_schema(), schema_of_section(Config)], ids=["study", "config"]
)
def test_every_key_is_explained_and_its_default_allowed(schema: dict[str, Any]) -> None:
    """Whatever has keys of its own allows no others."""
    if schema.get("properties"):
        assert schema["additionalProperties"] is False
    for name, inner in schema.get("properties", {}).items():
        assert inner["description"].endswith((".", "'")), name
        if "default" in inner:
            assert [*find_faults_of_section(inner, inner["default"])] == [], name
        test_every_key_is_explained_and_its_default_allowed(inner)
    if isinstance(schema.get("additionalProperties"), dict):
        test_every_key_is_explained_and_its_default_allowed(schema["additionalProperties"])


FAULTS = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text(encoding="utf-8"))
EVERY = {"KINDS": registry.kinds(), "FAMILIES": family_names()}
BASES = {"own": STUDY, "mini": bundled("mini")}


def read(fault: Any) -> dict[str, Any]:
    """Return a fault with its change and its whole sentence."""
    if isinstance(fault, dict):
        return fault
    key, value, rest = fault
    return {"change": {key: value}, "sentence": f"{key}: {rest}"}


@pytest.mark.parametrize(
    ("base", "fault"),
    [(base, read(fault)) for base, faults in FAULTS.items() for fault in faults],
    ids=lambda each: each["sentence"][:60] if isinstance(each, dict) else each,
)
def test_what_is_wrong_is_refused_in_a_sentence(
    tmp_path: Path, base: str, fault: dict[str, Any]
) -> None:
    (tmp_path / "mine.py").write_text("def net(n): ...\n")
    changes = fault.get("change", {}) | ({fault["remove"]: MISSING} if "remove" in fault else {})
    path = written(tmp_path, changed(BASES[base], changes))
    found = refusals.refusal(load_study, path)
    sentence = fault["sentence"]
    for word, names in EVERY.items():
        sentence = sentence.replace(word, ", ".join(sorted(names)))
    wanted = ".*".join(map(re.escape, f"{path}: {sentence}".split("...")))
    assert re.fullmatch(wanted, found), found
