import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import vitscope
from tests.helpers.looking import Made, in_memory, of_the_loss
from tests.helpers.refusals import refusal
from tests.runs.copies import EVERYTHING, TINY, Workflow
from tests.scopes.networks import looked_at
from vitscope.drawing.saving import save, style
from vitscope.errors import VitscopeError
from vitscope.files.tables import PARTS
from vitscope.jobs.measures import measure_of_parts
from vitscope.measures import registry
from vitscope.package_data import ROOT, STYLE
from vitscope.scopes.scope import Scope
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

OF_THE_LOSS = [name for name in in_memory()[1:] if registry.declared(name).needs == "loss"]


def results_of(workflow: Workflow, name: str) -> Made:
    return Made(load_study(workflow.studies / f"{name}.yaml"), workflow.root / "results")


def compared(scope: Scope, made: Made, tables: list[str]) -> None:
    for name in tables:
        found, expected = scope.table(name, resamples=True), made.table(name, "vit")
        pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=name)


@pytest.fixture(scope="module")
def tiny(made: Workflow) -> Made:
    return results_of(made, TINY)


@pytest.fixture(scope="module")
def scope(tiny: Made) -> Scope:
    return tiny.looked_at("vit")


def test_tables_are_those_of_the_workflow(tiny: Made, scope: Scope) -> None:
    there = [name for name in scope.available() if (tiny.results / name / "vit.parquet").is_file()]
    assert {"blocks", "feature_variance", "fourier", "spectrum", "cka", "reliability"} < {*there}
    compared(scope, tiny, there)
    compared(of_the_loss(tiny, "vit"), tiny, ["landscape"])


@pytest.mark.nightly
def test_every_table_is_that_of_the_workflow(every_kind: Workflow) -> None:
    made = results_of(every_kind, EVERYTHING)
    others = [name for name in in_memory() if name not in (*OF_THE_LOSS, "position_bias")]
    compared(made.looked_at("vit"), made, others)
    compared(of_the_loss(made, "vit"), made, OF_THE_LOSS)
    between = vitscope.compare({name: made.looked_at(name) for name in ("vit", "resnet")})
    expected = made.table("cka_between", "vit+resnet")
    found = between.table("cka_between", resamples=True)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


RESULTS = Path(os.environ.get("VITSCOPE_RESULTS", ROOT / "results"))


def cheap() -> list[str]:
    """Return the tables that take a pass or two; of all others there is a nightly test."""
    shown = load_study(BUNDLED_STUDIES / "mini.yaml").models_of
    measures = [registry.declared(name) for name in in_memory()[1:] if "vit" in shown(name)]
    passes = [
        each.name
        for each in measures
        if each.reads_attention
        or measure_of_parts(each).needs in ("latents", "predictions", "network")
    ]
    return ["blocks", *passes]


@pytest.fixture(scope="module")
def last_run() -> tuple[Scope, Made]:
    made = Made(load_study(BUNDLED_STUDIES / "mini.yaml"), RESULTS)
    return made.looked_at("vit"), made


@pytest.mark.last_run
@pytest.mark.parametrize("table", cheap())
def test_a_table_is_that_of_the_last_run(last_run: tuple[Scope, Made], table: str) -> None:
    """Of the ViT of the default study, looked at in memory: the same bits."""
    compared(*last_run, [table])


@pytest.mark.parametrize("name", ["fig9", "reliability", "landscape"])
def test_a_figure_is_that_of_the_workflow(tiny: Made, tmp_path: Path, name: str) -> None:
    figure = vitscope.read(tiny.results).plot(name)
    with style(STYLE):
        save(figure, tmp_path / "figure.png", "", {})
    ours, theirs = (
        np.array(Image.open(path)).astype(int)
        for path in (tmp_path / "figure.png", tiny.results.parents[1] / f"figures/{name}.png")
    )
    np.testing.assert_array_equal(ours, theirs)


def test_tables_that_were_read(tiny: Made) -> None:
    read = vitscope.read(tiny.results)
    assert {member.model for member in read.members} == {"resnet", "vit"}
    expected = pd.concat([tiny.table("feature_variance", name) for name in ("resnet", "vit")])
    found = read.table("feature_variance", resamples=True)
    pd.testing.assert_frame_equal(found, expected.reset_index(drop=True), check_exact=True)
    # What people print has the columns that people read.
    left = {*found} - {*read.feature_variance}
    assert left == {"variance_resampled"}
    # Of the one model that a figure needs them of.
    assert set(read.predictions["model"]) == {"vit"}
    assert len(read.predictions) == 16
    assert read.figures()["fig9"] == "feature_variance"
    assert "no table 'hessian'" in refusal(read.table, "hessian")
    with pytest.raises(AttributeError, match="no table 'hesian'"):
        _ = read.hesian


def test_claims_are_counted_as_in_the_workflow(tiny: Made, scope: Scope) -> None:
    ours = scope.counted("feature_variance")
    theirs = vitscope.read(tiny.results).table("feature_variance")
    variance = theirs[theirs["model"] == "vit"].sort_values("index")
    falls = np.diff(variance["variance"])[variance["kind"].to_numpy()[1:] == "msa"] < 0
    row = ours[ours["claim"] == "msa_reduces_variance"].iloc[0]
    assert (row["measured_count"], row["measured_total"]) == (falls.sum(), len(falls))
    told = scope.claims("feature_variance").iloc[0]
    assert told["measured"].startswith(f"{falls.sum()} of {len(falls)} (")
    assert told["measured"].endswith("open)")
    assert told["holds"] == row["verdict"]


def test_one_pass_measures_all_that_is_missing(tiny: Made) -> None:
    scope = tiny.looked_at("vit")
    assert len(scope.feature_variance) > 0
    (path, *_) = Path(scope._folder.name).glob("passes/vit/*.parquet")
    assert {"feature_variance", "fourier", "cka"} <= {*PARTS.read(path)["measure"]}


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda scope: scope.table("hesian"), "There is no measure 'hesian'. Did you mean"),
        (lambda scope: scope.plot("fig9"), "There is no kind of figure 'fig9'"),
        (lambda scope: scope.table("fit"), "fit takes a training: the workflow measures it"),
        (lambda scope: scope.table("trajectory"), "trajectory takes a training"),
        (lambda scope: scope.table("shape_texture"), "needs the images of a split 'conflict'"),
        (lambda scope: scope.table("beside_people"), "allowed: model_vs_human"),
        (lambda scope: scope.table("landscape"), "landscape needs the loss of the training: give"),
        (lambda scope: scope.table("cka_between"), "cka_between takes two networks: ask"),
    ],
)
def test_what_cannot_be_measured_here(
    scope: Scope, ask: Callable[[Scope], Any], sentence: str
) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        ask(scope)


def test_without_augmentation_a_loss_may_leave_it_out(scope: Scope) -> None:
    assert refusal(scope.table, "curvature") == (
        "curvature needs the loss of the training: give loss={'weight_decay': ...}, 0 for none; "
        "add 'augment' with how its images were augmented, as without it, or with 'none', they "
        "are taken as they are."
    )
    one, other = (looked_at(loss={"weight_decay": 0} | more) for more in ({}, {"augment": "none"}))
    pd.testing.assert_frame_equal(one.curvature, other.curvature, check_exact=True)


def test_a_kind_of_figure_in_place_of_its_table(scope: Scope) -> None:
    said = "'attention_distance' is a kind of figure: its table is 'attention', and "
    said += "plot('attention_distance') draws it."
    assert refusal(scope.table, "attention_distance") == said
    compared = vitscope.compare({"a": scope, "b": scope})
    assert refusal(compared.table, "attention_distance") == said
    assert refusal(compared.changes, "attention_distance") == said
    with pytest.raises(AttributeError) as caught:
        scope.attention_distance  # noqa: B018
    assert str(caught.value).startswith(said)


def test_a_folder_that_is_no_study(tmp_path: Path) -> None:
    assert "There is no folder" in refusal(vitscope.read, tmp_path / "nowhere")
    assert "There is no run.yaml in" in refusal(vitscope.read, tmp_path)
