from pathlib import Path

import pandas as pd
import pytest

from tests.compare import EXPECTED
from tests.helpers.claims import variances, with_resamples
from tests.helpers.studies import mini, mini_with
from vitscope.drawing.figure import Member, figure_as_table
from vitscope.drawing.looks import look_of
from vitscope.jobs.describing import describe_member
from vitscope.jobs.figures import figures_counted_in_overview_job, figures_for_overview_job
from vitscope.jobs.job import Resources
from vitscope.jobs.tables import export_table_job
from vitscope.studies.loading import BUNDLED_STUDIES, load_study


def test_networks_of_the_users_own_differ_and_trainings_of_one_do_not(tmp_path: Path) -> None:
    # Four models of the user's own: two of one network, and two more.
    (tmp_path / "nets.py").write_text("def small(): ...\ndef large(): ...\ndef deep(): ...\n")
    mine = mini()["models"]["resnet"] | {"family": "python"}
    models = {
        f"{make}_{seed}": mine | {"arch": {"file": "nets.py", "make": make}}
        for make, seed in (("small", 0), ("small", 1), ("large", 0), ("deep", 0))
    }
    figures = {"one": {"kind": "feature_variance", "models": [*models]}}
    own = load_study(
        mini_with(tmp_path, models=models, figures=figures, buildups=None, videos=None)
    )
    looks = {name: look_of(Member(**describe_member(own, name))) for name in own.models}
    assert looks["small_0"] == looks["small_1"]
    assert len({looks[name].color for name in ("small_0", "large_0", "deep_0")}) == 3
    assert len({looks[name].marker for name in ("small_0", "large_0", "deep_0")}) == 3


def test_an_alternet_without_attention_looks_like_the_resnet_that_it_is() -> None:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    looks = {name: look_of(Member(**describe_member(study, name))) for name in study.models}
    assert looks["cnn"] == looks["resnet"]
    assert looks["cnn_with_msas"] == looks["alternet"] != looks["resnet"]


PLAIN = variances("m", ["stem", "msa", "mlp"], [4] * 3, [1, 3, 2])
TABLE = with_resamples(PLAIN, "variance", 0.1)


def test_resamples_are_left_out_of_csv(tmp_path: Path) -> None:
    assert {*TABLE} - {*PLAIN} == {"variance_resampled"}
    TABLE.to_parquet(tmp_path / "table.parquet")
    inputs = {"table": str(tmp_path / "table.parquet")}
    export_table_job(inputs, {"csv": str(tmp_path / "table.csv")}, {}, Resources())
    export_table_job(inputs, {"latex": str(tmp_path / "table.tex")}, {}, Resources())
    latex = (tmp_path / "table.tex").read_text()
    assert latex.count("longtable") == 2
    assert "resampled" not in latex
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table.csv"), PLAIN)


def test_the_data_of_a_figure_has_no_resamples() -> None:
    points = figure_as_table({"feature_variance": TABLE}, [Member("m", "M", "vit")], {})
    assert {*PLAIN} <= {*points}
    assert not [name for name in points if name.endswith("_resampled")]


@pytest.mark.parametrize("name", ["mini", "cifar100"])
def test_the_overview_counts_its_claims_in_all_networks_that_any_figure_counts_them_in(
    name: str,
) -> None:
    study = load_study(BUNDLED_STUDIES / f"{name}.yaml")
    folder = EXPECTED if name == "mini" else EXPECTED / name
    claims = pd.read_csv(folder / "claims.csv")
    shown = claims[claims["figure"].isin(figures_for_overview_job(study))]
    wanted = claims[claims["claim"].isin(shown["claim"])]
    counted = claims[claims["figure"].isin(figures_counted_in_overview_job(study))]
    key = ["claim", "model", "versus", "snapshot"]
    missing = set(map(tuple, wanted[key].fillna("").values)) - set(
        map(tuple, counted[key].fillna("").values)
    )
    assert not missing
    assert {*wanted["model"]} > {*shown["model"]}
