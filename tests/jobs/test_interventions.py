"""Interventions of a study: each job measures what a scope does, which hooks by hand hold."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import vitscope
from tests.helpers.looking import look_at_split
from tests.helpers.networks import mini
from tests.helpers.refusals import refusal
from vitscope.data.building import build_split_file
from vitscope.data.split import Split
from vitscope.files.tables import read_table_part
from vitscope.jobs.job import Resources, find_job
from vitscope.measures import registry
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

MODEL, IMAGES, BATCH = "vit", 10, 6
CHANGES: list[dict[str, Any]] = [
    {"at": "blocks.1.attn", "how": "mean"},
    {"at": "blocks.2.attn", "how": "scale", "factor": 0.3, "of": "heads", "heads": [1]},
    {"at": 4, "how": "resample", "of": "stream", "tokens": "positions", "channels": [1, 5]},
]


@pytest.fixture(scope="module")
def mini_study() -> Study:
    return load_study(BUNDLED_STUDIES / "mini.yaml")


def intervened(study: Study, changes: list[dict[str, Any]]) -> Study:
    """Return the study with changes of its ViT, measured on few images."""
    model = replace(study.models[MODEL], interventions=changes)
    analysis = replace(study.analysis, images=IMAGES, batch_size=BATCH, seed=None)
    sections = study.sections | {"lesion": {"images": None}}
    models = {**study.models, MODEL: model}
    return replace(study, models=models, analysis=analysis, sections=sections)


@pytest.fixture(scope="module")
def split(mini_study: Study, tmp_path_factory: pytest.TempPathFactory) -> Split:
    path = tmp_path_factory.mktemp("data") / "test.safetensors"
    splits = {"test": {"images": IMAGES, "seed": 0}}
    data = asdict(mini_study.data["shapes32"]) | {"splits": splits}
    build_split_file("shapes32", data, "test", path)
    return Split(path)


# No branch can be measured where the stream is changed besides.
@pytest.mark.parametrize(
    ("changes", "tables"),
    [(CHANGES[:2], ["attention_maps", "skip_ratio", "lesion"]), (CHANGES, ["attention_maps"])],
)
def test_jobs_measure_what_a_scope_does(
    mini_study: Study,
    split: Split,
    tmp_path: Path,
    changes: list[dict[str, Any]],
    tables: list[str],
) -> None:
    study, (network, _) = intervened(mini_study, changes), mini(MODEL)
    inputs = {"checkpoint": network, "images": split, "blocks": str(tmp_path / "blocks.parquet")}

    def run(job: str, outputs: dict[str, Any], **names: str) -> None:
        work = find_job(job)
        values = work.values(study, {"model": MODEL, **names}) | {"device": torch.device("cpu")}
        work.run(inputs, outputs, values, Resources())

    analysis = {"batch_size": BATCH, "bootstrap": asdict(study.analysis.bootstrap)}
    plain = look_at_split(network, split, study.models[MODEL], name=MODEL, analysis=analysis)
    inputs["blocks"] = str(plain._maker.make("blocks"))
    scope = plain
    for change in changes:
        scope = scope.intervene(**change)
    run("predict", {"predictions": tmp_path / "predictions"}, split="test")
    ours, theirs = pd.read_parquet(tmp_path / "predictions"), scope.table("predictions")
    assert (ours["nll"] != plain.table("predictions")["nll"]).all()
    pd.testing.assert_series_equal(ours["nll"], theirs["nll"], check_exact=True)
    for name in tables:
        run("measure", {"table": tmp_path / name}, measure=name)
        table = registry.declared(name).part_table.read(tmp_path / name)
        expected = scope.table(name, resamples=True)
        pd.testing.assert_frame_equal(table[[*expected]], expected, check_exact=True, obj=name)
    run("measure_pass", {"parts": tmp_path / "pass"}, part="0")
    part = registry.declared("feature_variance").part_table
    (parts, _) = read_table_part(part, tmp_path / "pass", "feature_variance")
    means = parts.groupby("index")["variance"].mean()
    expected = scope.table("feature_variance")["variance"]
    np.testing.assert_allclose(means, expected, rtol=1e-12)
    assert (means != plain.table("feature_variance")["variance"]).sum() >= 20


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": "blocks.99.attn"}, "interventions.0: at: found 'blocks.99.attn'"),
        ({"at": 0}, "interventions.0: at: no branch joins the stream"),
        ({"at": 1, "how": "scale"}, "interventions.0: factor: how='scale' takes a factor"),
        ({"at": 1, "of": "heads", "heads": [9]}, "interventions.0: heads: found [9]"),
    ],
)
def test_what_no_network_has_is_refused(
    mini_study: Study, split: Split, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    study, (network, _) = intervened(mini_study, [change]), mini(MODEL)
    blocks = vitscope.look(network, torch.rand(2, 3, 32, 32))._maker.make("blocks")
    values = find_job("predict").values(study, {"model": MODEL, "split": "test"})
    inputs = {"checkpoint": network, "images": split, "blocks": str(blocks)}
    outputs = {"predictions": tmp_path / "predictions"}
    assert words in refusal(find_job("predict").run, inputs, outputs, values, Resources())


def test_measures_that_take_gradients_are_refused(mini_study: Study) -> None:
    study = intervened(mini_study, CHANGES[:1])
    said = refusal(registry.declared("class_maps").check, study)
    assert "models.vit.interventions: 'class_maps' takes gradients" in said
    assert "'hessian' takes gradients" in refusal(registry.declared("hessian").check, study)
    registry.declared("fourier").check(study)


def test_a_network_with_interventions_is_a_control(mini_study: Study) -> None:
    traits = mini_study.traits_of("vit_scenes_mean")
    assert traits["control"] is True
    assert traits["interventions"] == [{"at": "blocks.0.attn", "how": "mean"}]
    groups = [group for group in mini_study.repeats if "vit_scenes" in group]
    assert not groups
