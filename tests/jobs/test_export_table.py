"""A table as CSV has all of its columns but those that are for claims alone."""

from pathlib import Path

import pandas as pd

from tests.helpers.claims import variances, with_resamples
from vitscope.drawing.figure import Member
from vitscope.drawing.points import points_of
from vitscope.jobs.job import Resources
from vitscope.jobs.tables import export_table

PLAIN = variances("m", ["stem", "msa", "mlp"], [4] * 3, [1, 3, 2])
TABLE = with_resamples(PLAIN, "variance", 0.1)


def test_resamples_are_left_out_of_csv(tmp_path: Path) -> None:
    assert {*TABLE} - {*PLAIN} == {"variance_resampled"}
    TABLE.to_parquet(tmp_path / "table.parquet")
    inputs = {"table": str(tmp_path / "table.parquet")}
    export_table(inputs, {"csv": str(tmp_path / "table.csv")}, {}, Resources())
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table.csv"), PLAIN)


def test_the_data_of_a_figure_has_no_resamples() -> None:
    points = points_of({"feature_variance": TABLE}, [Member("m", "M", "vit")], {})
    assert {*PLAIN} <= {*points}
    assert not [name for name in points if name.endswith("_resampled")]
