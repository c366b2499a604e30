from pathlib import Path

from tests.helpers.studies import mini_with
from vitscope.measures import registry
from vitscope.studies.loading import load_study


def test_snapshots_are_those_of_the_figures_in_the_order_of_training(tmp_path: Path) -> None:
    figure = {"kind": "hessian", "models": ["vit"], "snapshots": ["end", "warmup"]}
    study = load_study(mini_with(tmp_path, figures={"fig": figure}))
    assert study.snapshots_of("hessian", "vit") == ["warmup", "end"]
    assert study.snapshots_of("hessian_density", "vit") == []
    del figure["snapshots"]
    study = load_study(mini_with(tmp_path, figures={"fig": figure}))
    assert study.snapshots_of("hessian", "vit") == ["end"]
    assert registry.declared("hessian").split(study) == "train"
