import csv
import gzip
from dataclasses import astuple

import pandas as pd
import pytest

from vitscope.claims.points import bands, read_published_points, subsamples
from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.package_data import PUBLISHED_POINTS


def points(kinds: list[str], sizes: list[int]) -> pd.DataFrame:
    depth = [i / max(1, len(kinds) - 1) for i in range(len(kinds))]
    return pd.DataFrame({"kind": kinds, "height": sizes, "width": sizes, "depth": depth})


def test_a_smaller_map_subsamples_and_a_branch_that_pools_does_not():
    frame = points(["stem", "conv", "conv", "msa", "pool"], [8, 8, 4, 4, 4])
    assert subsamples(frame).tolist() == [False, False, True, False, False]


def test_a_map_that_shrinks_in_one_direction_subsamples():
    frame = points(["stem", "conv"], [8, 8]).assign(width=[8, 4])
    assert subsamples(frame).tolist() == [False, True]


def test_bands_reach_from_the_cut_point_before():
    frame = points(["stem", "msa", "mlp", "pool", "msa"], [8, 8, 8, 4, 4])
    assert [astuple(band) for band in bands(frame)] == [
        ("msa", 0.0, 0.25),
        ("subsampling", 0.5, 0.75),
        ("msa", 0.75, 1.0),
    ]


def test_a_block_that_attends_and_subsamples_has_both_bands():
    assert [band.kind for band in bands(points(["stem", "msa"], [8, 4]))] == ["subsampling", "msa"]


def test_the_stem_has_no_band():
    assert bands(points(["msa"], [8])) == []


FIG9 = PUBLISHED_POINTS / "fig9.csv"
COLUMNS = registry.kinds()["feature_variance"].published


def test_curves_come_by_model_and_in_order():
    curves = read_published_points(
        FIG9, COLUMNS, {"my_vit": "ViT", "my_resnet": "ResNet"}, same_models=True
    )
    assert list(curves) == ["my_vit", "my_resnet"]
    vit, resnet = curves.values()
    assert (vit.series, vit.same_model, len(vit.points)) == ("ViT", True, 25)
    assert resnet.points["variance"].tolist()[:2] == [0.0922, 0.2008]
    assert vit.points["depth"].tolist() == pytest.approx([i / 24 for i in range(25)], abs=1e-6)
    assert not read_published_points(FIG9, COLUMNS, {"my_vit": "ViT"})["my_vit"].same_model


def test_kinds_of_blocks_agree_with_the_published_bands():
    points = pd.read_csv(FIG9)
    bands = pd.read_csv(PUBLISHED_POINTS / "fig9_bands.csv").query("figure == 'fig9'")
    for model, ours in points.groupby("model"):
        theirs = bands[bands["model"] == model]
        for kind, chosen in {
            "MSA": ours["kind"] == "msa",
            "subsampling": ours["subsampling"],
        }.items():
            ends = theirs[theirs["kind"] == kind]["end_index"].round().astype(int)
            assert ours[chosen]["index"].tolist() == ends.tolist()
    rest = points[~points["kind"].isin(["msa", "stem"])].groupby("model")["kind"].unique()
    assert {model: list(kinds) for model, kinds in rest.items()} == {
        "ResNet": ["conv"],
        "ViT": ["mlp"],
    }


def test_every_file_is_a_table_that_the_readme_names():
    readme = (PUBLISHED_POINTS / "README.md").read_text(encoding="utf-8")
    files = sorted(PUBLISHED_POINTS.glob("*.csv*"))
    assert len(files) == 19
    for file in files:
        opens = gzip.open if file.suffix == ".gz" else open
        with opens(file, "rt", encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        assert rows
        assert {len(row) for row in rows} == {len(header)}
        assert file.name in readme


@pytest.mark.parametrize(
    ("file", "series", "message"),
    [
        ("fig9.csv", "VIT", r"no series 'VIT' for the model m, only ResNet, ViT\."),
        ("fig9.csv", "Vit", "Did you mean 'ViT'"),
        ("fig5.csv", "ViT", "has no curves of this figure .* name another file"),
        ("fig99.csv", "ViT", "Cannot read the published points .*fig99.csv"),
    ],
)
def test_a_file_or_series_that_is_wrong_is_named(file, series, message):
    with pytest.raises(VitscopeError, match=message):
        read_published_points(PUBLISHED_POINTS / file, COLUMNS, {"m": series})


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n\xff\xfe"])
def test_a_file_that_is_no_table_is_named(tmp_path, content):
    file = tmp_path / "points.csv"
    file.write_bytes(content)
    with pytest.raises(VitscopeError, match=r"points\.csv"):
        read_published_points(file, COLUMNS, {"m": "ViT"})
