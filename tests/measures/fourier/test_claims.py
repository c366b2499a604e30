import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.claims import count, published, verdicts
from vitscope.package_data import PUBLISHED_POINTS


def fourier(model, kinds, sizes, components, measure="diagonal") -> pd.DataFrame:
    """Return spectra that are `components` at the highest frequency and less extreme below."""
    rows = []
    for index, (kind, size, component) in enumerate(zip(kinds, sizes, components, strict=True)):
        for step in range(size // 2 + 1):
            frequency = step / (size // 2) if size > 1 else 0.0
            value = component * frequency**2 if size > 1 else 0.0
            rows.append((index, kind, size, size, measure, frequency, value))
    columns = ["index", "kind", "height", "width", "measure", "frequency", "delta_log_amplitude"]
    points = pd.DataFrame(rows, columns=columns).assign(model=model, ci_low=np.nan, ci_high=np.nan)
    return points.assign(depth=points["index"] / max(len(kinds) - 1, 1))


KINDS_OF_VIT = ["stem"] + ["msa", "mlp"] * 12
KINDS = ["stem", "conv", "conv", "msa", "mlp"]
CONVS = fourier("m", ["conv"] * 3, [4] * 3, [1, 3, 2])
SPECTRA = fourier("m", KINDS, [8, 8, 8, 4, 4], [1, 3, 2, 1, 4])
# The maps become smaller, and the last one, a single pixel, has no high frequency.
_KINDS, _SIZES = ["stem", "conv", "conv", "conv"], [8, 8, 4, 1]
AVERAGES = pd.concat(
    [fourier("m", _KINDS, _SIZES, [-4, -3, -2, 0]), fourier("n", _KINDS, _SIZES, [-3, -2, -3, 0])]
)
# The last has a model of Convs alone beside, of which the ends of stages are counted.
TABLES = {
    "averaging": AVERAGES,
    "fourier_curves": CONVS,
    "fourier_depth": SPECTRA,
    "fourier": pd.concat([SPECTRA, AVERAGES[AVERAGES["model"] == "n"]]),
}
EXAMPLES = {kind: {"fourier": table, "blocks": table} for kind, table in TABLES.items()}
TRAITS = {"averaging": {"m": {"averages": ["n"]}}}


def in_fourier(kind: str, *tables: pd.DataFrame, theirs=None) -> pd.DataFrame:
    table = pd.concat(tables)
    models = list(dict.fromkeys(table["model"]))
    return count(kind, {"fourier": table, "blocks": table}, models, theirs)


def test_fig_8_is_counted_as_by_hand():
    curve = pd.read_csv(PUBLISHED_POINTS / "fig8.csv")["delta_log_amplitude"].tolist()
    falls = sum(curve[i] < curve[i - 1] for i in range(1, 25, 2))
    rises = sum(curve[i] > curve[i - 1] for i in range(2, 25, 2))
    assert (falls, rises) == (9, 8)
    theirs = published("fourier_depth", "fig8.csv", {"vit": "ViT"})
    table = fourier("vit", KINDS_OF_VIT, [14] * 25, curve)
    claims = in_fourier("fourier_depth", table, theirs=theirs)
    assert verdicts(claims) == {
        ("msa_reduces_high_frequency", "vit"): (9, 12, True),
        ("mlp_increases_high_frequency", "vit"): (8, 12, True),
    }
    assert claims["published_count"].tolist() == [9, 8]
    assert claims[["published_value", "measured_value"]].T.eq([9 / 12, 8 / 12]).all(axis=None)
    assert claims["published_series"].tolist() == ["ViT", "ViT"]


CHANGES = ["msa_reduces", "conv_increases", "mlp_increases", "subsampling_increases"]


@pytest.mark.parametrize(
    ("kinds", "sizes", "components", "expected"),
    [
        (KINDS, [8, 8, 4, 4, 4], [-5, -4, -3, -3.5, -3], dict.fromkeys(CHANGES, (1, 1, True))),
        (KINDS, [8, 8, 4, 4, 4], [-3, -4, -5, -4, -5], dict.fromkeys(CHANGES, (0, 1, False))),
        # A map of one position has no high frequency.
        (["mlp"] * 5, [4, 4, 4, 1, 1], [-3, -2, -4, 0, 0], {"mlp_increases": (1, 2, False)}),
    ],
)
def test_the_highest_frequency_of_the_diagonal_is_counted(kinds, sizes, components, expected):
    diagonal = fourier("m", kinds, sizes, components)
    radial = fourier("m", kinds, sizes, [-each for each in components], measure="radial")
    found = verdicts(in_fourier("fourier", diagonal, radial))
    assert found == {(f"{each}_high_frequency", "m"): expected[each] for each in expected}


def test_fig_2a_is_counted_as_by_hand():
    frame = pd.read_csv(PUBLISHED_POINTS / "fig2a.csv").query(
        "model == 'ResNet' and frequency == 1"
    )
    curve = frame.sort_values("index")["delta_log_amplitude"].tolist()
    higher = sum(curve[j] > curve[i] for i in range(17) for j in range(i + 1, 17))
    assert (len(curve), higher) == (17, 126)
    sizes = [56] * 4 + [28] * 4 + [14] * 6 + [8] * 3
    table = fourier("resnet", ["stem"] + ["conv"] * 16, sizes, curve)
    theirs = published("fourier_curves", "fig2a.csv", {"resnet": "ResNet", "vit": "ViT"})
    vit = fourier("vit", KINDS_OF_VIT, [14] * 25, [0.0] * 25)
    claims = in_fourier("fourier_curves", table, vit, theirs=theirs)
    # The 17 curves have 17 x 16 / 2 pairs.
    assert verdicts(claims) == {("conv_model_raises_high_frequency", "resnet"): (126, 136, True)}
    assert claims["published_count"].tolist() == [126]
    assert claims["published_total"].tolist() == [136]


@settings(max_examples=20)
@given(st.permutations(range(7)))
def test_pairs_are_counted_as_kendall_counts_them(ranks):
    table = fourier("m", ["stem"] + ["conv"] * 6, [4] * 7, [-float(rank + 1) for rank in ranks])
    ((count, total, holds),) = verdicts(in_fourier("fourier_curves", table)).values()
    # Kendall's tau is the share of pairs in favour minus the share of pairs against.
    tau = pd.Series([-rank for rank in ranks]).corr(pd.Series(range(7)), method="kendall")
    assert (count, total) == (pytest.approx(21 * (1 + tau) / 2), 21)
    assert holds == (count > 10.5)


@pytest.mark.parametrize("kinds", [["stem", "conv", "msa"], ["stem", "mlp"]])
def test_only_convolutional_models_are_to_raise_high_frequencies(kinds):
    table = fourier("m", kinds, [4] * len(kinds), range(len(kinds)))
    assert in_fourier("fourier_curves", table).empty
    claims = in_fourier("fourier", table)["claim"].tolist()
    assert "stage_end_reduces_high_frequency" not in claims


def test_one_curve_has_no_depth():
    assert in_fourier("fourier_curves", fourier("m", ["conv", "conv"], [4, 1], [-1, 0])).empty


@pytest.mark.parametrize(
    ("sizes", "components", "expected"),
    [
        # Block 3 subsamples: the ends of stages are blocks 2, which falls, and 5, which rises.
        ([8, 8, 8, 4, 4, 4], [-3, -2, -4, -1, -5, -2], (1, 2, False)),
        # A stage that consists of a subsampling block has no end.
        ([8, 8, 4], [-3, -4, -5], (1, 1, True)),
    ],
)
def test_stages_end_before_subsampling_and_at_the_last_block(sizes, components, expected):
    kinds = ["stem"] + ["conv"] * (len(sizes) - 1)
    table = fourier("m", kinds, sizes, components)
    found = verdicts(in_fourier("fourier", table))
    assert found["stage_end_reduces_high_frequency", "m"] == expected


def test_averages_are_compared_with_what_is_averaged_at_each_cut_point():
    def counted(table: pd.DataFrame) -> pd.DataFrame:
        tables = {"fourier": table, "blocks": table}
        return count("averaging", tables, ["m", "n"], traits_of=TRAITS["averaging"])

    found = verdicts(counted(AVERAGES))
    assert found == {("averaging_reduces_high_frequency", "m", "n"): (2, 3, True)}
    fewer = AVERAGES[AVERAGES["index"] > (AVERAGES["model"] == "n")]
    assert counted(fewer)["measured_value"].isna().all()
