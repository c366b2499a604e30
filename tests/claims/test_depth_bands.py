from dataclasses import astuple

import pandas as pd

from vitscope.claims.depth_bands import bands, subsamples


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
