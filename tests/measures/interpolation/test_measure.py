from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.jobs import values_of
from tests.helpers.refusals import refusal
from tests.helpers.studies import mini, mini_with
from vitscope.jobs.job import find_job
from vitscope.jobs.measures import case_of
from vitscope.measures import registry
from vitscope.planning import costs_of_job
from vitscope.planning.targets import check_target_names
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

PAIR = {"measure": "interpolation", "model": "resnet+resnet_1"}
TRIPLE = {"measure": "plane", "model": "resnet+resnet_1+resnet_2"}


@pytest.fixture(scope="module")
def study() -> Study:
    return load_study(BUNDLED_STUDIES / "mini.yaml")


def refused(folder: Path, group: list[str], **sections: Any) -> str:
    """Return the sentence in which a study with a pair or triple is refused, without its path."""
    kind, key = ("interpolation", "pairs") if len(group) == 2 else ("plane", "triples")
    figures = {"line": {"kind": kind, key: [group]}}
    path = mini_with(folder, **{"figures": figures, "buildups": None, "videos": None, **sections})
    return refusal(load_study, path).removeprefix(f"{path}: ")


def with_model(name: str, **changed: Any) -> dict[str, Any]:
    models = mini()["models"]
    return models | {name: models[name] | changed}


def test_a_job_opens_both_models_and_images_of_the_first(study: Study) -> None:
    case = case_of(study, PAIR)
    asked = {name: case.names(made) for name, made in case.measure.inputs.items()}
    assert asked == {
        "checkpoint": {"model": "resnet"},
        "other_checkpoints": [{"model": "resnet_1"}],
        "blocks": {"model": "resnet"},
        "images": {"dataset": "shapes32", "split": "test"},
        "augmented": {"model": "resnet"},
    }
    values = values_of("measure", study, **PAIR)
    assert (values["model"], values["others"]) == ("resnet", ["resnet_1"])
    assert [values["network"]] == values["other_networks"] == [study.network("resnet_1")]
    sections = study.sections | {"interpolation": {"reset_images": 0, "images": 5, "points": 2}}
    assert (
        case_of(replace(study, sections=sections), PAIR).names(case.measure.inputs["augmented"])
        == []
    )


@pytest.mark.parametrize(
    ("settings", "passes", "most"),
    [
        # Of 200 images twice, and of 192 augmented ones.
        ({}, 11 * (2 * 200 + 192), True),
        ({"points": 3, "reset_images": 0}, 3 * 200, False),
        # There are 2,000 of either.
        ({"images": None, "reset_images": 9999}, 11 * (2 * 2000 + 2000), True),
    ],
)
def test_a_plan_counts_passes_of_the_first_network(
    study: Study, settings: dict[str, Any], passes: int, most: bool
) -> None:
    sections = study.sections | {"interpolation": study.sections["interpolation"] | settings}
    asked = costs_of_job.request_of(replace(study, sections=sections), PAIR)
    assert asked.names["model"] == "resnet"
    asked = replace(asked, images=2000)
    found = costs_of_job.work(find_job("measure"), asked)
    assert found is not None
    assert (found.passes, found.most, found.vectors) == (passes, most, 2)


def test_images_are_named_in_the_facts_of_its_figure(study: Study) -> None:
    assert registry.declared("interpolation").splits(study) == ["test", "train"]


def test_pairs_without_a_line_are_refused_before_anything_runs(tmp_path: Path) -> None:
    assert refused(tmp_path, ["vit_scenes", "vit_scenes_zero"]) == (
        "figures.line.pairs: found 'vit_scenes' and 'vit_scenes_zero', allowed: two models without "
        "interventions, which are in no weights."
    )
    data = mini()["data"]
    data["large"] = data["shapes32"] | {"image_size": 64}
    for changed, name in (({"mean": [0.4, 0.4, 0.4]}, "shapes32"), ({"data": "large"}, "large")):
        models = with_model("vit_1", **changed)
        assert refused(tmp_path, ["vit", "vit_1"], data=data, models=models) == (
            f"figures.line.pairs: found 'vit' and 'vit_1' on data.shapes32 and data.{name}, "
            "allowed: two models on one data set, with the same mean and std."
        )
    said = refused(tmp_path, ["vit", "vit_scenes"])
    assert "found 'vit' on data.shapes32 and 'vit_scenes' on data.scenes32" in said


def test_a_study_without_training_images_is_told_how_to_do_without(tmp_path: Path) -> None:
    models = {
        name: {key: each for key, each in mini()["models"][name].items() if key != "training"}
        for name in ("vit", "vit_1")
    }
    for model in models.values():
        model.pop("history", None)
    without: dict[str, Any] = {"models": models, "training": None}
    said = refused(tmp_path, ["vit", "vit_1"], **without)
    assert "line shows a loss, and nothing says of what training" in said
    assert said.endswith("Or say analysis.interpolation.reset_images: 0, to reset no statistics.")
    analysis = mini()["analysis"] | {"interpolation": {"reset_images": 0}}
    figures = {"line": {"kind": "interpolation", "pairs": [["vit", "vit_1"]]}}
    rest = {"figures": figures, "buildups": None, "videos": None, "analysis": analysis}
    assert load_study(mini_with(tmp_path, **without, **rest)).groups() == {"vit+vit_1"}


def test_a_table_of_a_pair_that_no_figure_shows_is_no_target(study: Study) -> None:
    check_target_names(study, PAIR)
    for model in ("vit", "resnet+vit"):
        said = refusal(check_target_names, study, PAIR | {"model": model})
        assert f"models of figures of interpolation: found '{model}', allowed: resnet+res" in said


def test_a_plane_opens_all_three(study: Study) -> None:
    case = case_of(study, TRIPLE)
    others = case.names(case.measure.inputs["other_checkpoints"])
    assert others == [{"model": "resnet_1"}, {"model": "resnet_2"}]
    values = values_of("measure", study, **TRIPLE)
    assert (values["model"], values["others"]) == ("resnet", ["resnet_1", "resnet_2"])
    assert values["other_networks"] == [study.network(name) for name in values["others"]]
    asked = replace(costs_of_job.request_of(study, TRIPLE), images=2000)
    found = costs_of_job.work(find_job("measure"), asked)
    assert found is not None
    # Of a grid of nine by nine and three networks.
    assert (found.passes, found.vectors) == ((81 + 3) * 100 + 81 * 64, 3)
    assert registry.declared("plane").splits(study) == ["test", "train"]


def test_triples_without_a_plane_are_refused_before_anything_runs(
    study: Study, tmp_path: Path
) -> None:
    said = refused(tmp_path, ["vit", "vit_1", "vit_scenes"])
    found = "found 'vit' on data.shapes32 and 'vit_scenes' on data.scenes32, allowed: two models"
    assert said.startswith(f"figures.line.triples: {found}")
    models = with_model("vit_2", mean=[0.4, 0.4, 0.4])
    assert refused(tmp_path, ["vit", "vit_1", "vit_2"], models=models) == (
        "figures.line.triples: found 'vit' and 'vit_2' on data.shapes32 and data.shapes32, "
        "allowed: two models on one data set, with the same mean and std."
    )
    check_target_names(study, TRIPLE)
    said = refusal(check_target_names, study, TRIPLE | {"model": "resnet+resnet_1"})
    assert f"models of figures of plane: found '{PAIR['model']}', allowed: resnet+res" in said
