from pathlib import Path
from typing import Any

import pytest

from tests.helpers.refusals import refusal
from tests.helpers.studies import mini, mini_with
from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.studies.loading import load_study

every_kind = pytest.mark.parametrize("kind", ["hessian", "hessian_density"])


def study_with(tmp_path: Path, figure: dict[str, Any], **changes: Any) -> Path:
    models = mini()["models"]
    bundled = {"bundled": "resources/checkpoints/mini/vit/warmup.safetensors"}
    models["vit"]["snapshots"] = {"warmup": bundled}
    models["resnet"].pop("snapshots", None)
    analysis = {"hessian": {"batches": 2, "batch_size": 10}} | changes
    return mini_with(tmp_path, models=models, figures={"fig": figure}, analysis=analysis)


def test_snapshots_are_those_of_the_figures_in_the_order_of_training(tmp_path: Path) -> None:
    figure = {"kind": "hessian", "models": ["vit"], "snapshots": ["end", "warmup"]}
    study = load_study(study_with(tmp_path, figure))
    assert study.snapshots_of("hessian", "vit") == ["warmup", "end"]
    assert study.snapshots_of("hessian_density", "vit") == []
    del figure["snapshots"]
    study = load_study(study_with(tmp_path, figure))
    assert study.snapshots_of("hessian", "vit") == ["end"]
    assert registry.declared("hessian").split(study) == "train"


@every_kind
def test_a_snapshot_that_a_model_lacks_is_refused(tmp_path: Path, kind: str) -> None:
    figure = {"kind": kind, "models": ["vit", "resnet"], "snapshots": ["warmup"]}
    assert refusal(load_study, study_with(tmp_path, figure)).endswith(
        "own.yaml: figures.fig.snapshots, for models.resnet: found 'warmup', allowed: end."
    )


def test_other_figures_show_no_snapshots(tmp_path: Path) -> None:
    figure = {"kind": "feature_variance", "models": ["vit"], "snapshots": ["end"]}
    with pytest.raises(
        VitscopeError, match=r"'hessian', 'hessian_density' .*'share_by_epoch' do: remove it"
    ):
        load_study(study_with(tmp_path, figure))


@pytest.mark.parametrize(
    ("kind", "section"),
    [("hessian", "hessian"), ("hessian_density", "hessian"), ("curvature", "curvature")],
)
def test_too_few_augmented_images_are_refused(tmp_path: Path, kind: str, section: str) -> None:
    figure = {"kind": kind, "models": ["vit"]}
    own = {section: {"batches": 5, "batch_size": 30}}
    fitting = load_study(study_with(tmp_path, figure, **own, augmented={"images": 150}))
    assert registry.declared(kind).read_settings(fitting).batches == 5
    few = study_with(tmp_path, figure, **own, augmented={"images": 149})
    assert refusal(load_study, few).endswith(
        f"analysis.{section}.batches: found 5 of 30 images each, allowed: at most 4: "
        "analysis.augmented.images is 149."
    )
