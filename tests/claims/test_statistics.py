"""What each claim counts: by hand on the published points, and on tables that are made for it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.claims import EVIDENCE
from vitscope.claims.counting import count_claims, joined
from vitscope.claims.published import Published, read_published
from vitscope.claims.report import introduction, sections
from vitscope.claims.tables import AGREEMENT, CLAIMS
from vitscope.measures.cka.claims import within_over_between
from vitscope.measures.rooms import kinds
from vitscope.settings.loading import PUBLISHED

KINDS_OF = {
    "vit": ["stem", "msa", "mlp"],
    "resnet": ["stem", "conv", "conv"],
    "alternet": ["stem", "conv", "msa"],
    "mixer": ["stem", "mlp", "mlp"],
}


def blocks(**kinds_of: list[str]) -> pd.DataFrame:
    rows = [
        {"model": model, "index": index, "kind": kind, "stage": min(index, 1)}
        for model, kinds in kinds_of.items()
        for index, kind in enumerate(kinds)
    ]
    return pd.DataFrame(rows)


def published(kind: str, file: str, **series: str) -> dict[str, Published]:
    return read_published(PUBLISHED / file, kinds()[kind].published, series)


def count(kind: str, tables: dict[str, pd.DataFrame], models: list[str], theirs=None):
    return count_claims("fig", EVIDENCE[kind], tables, models, theirs or {})


def verdicts(claims: pd.DataFrame) -> dict[tuple[str, ...], tuple]:
    """Return count, total and verdict, by claim and whom it is about."""
    claims = claims.astype(object).where(claims.notna(), None)
    return {
        tuple(row[key] for key in ("claim", "model", "versus") if row[key]): (
            row["measured_count"],
            row["measured_total"],
            row["holds"],
        )
        for row in claims.to_dict("records")
    }


# Fourier-transformed feature maps


def fourier(model, kinds, sizes, components, measure="diagonal") -> pd.DataFrame:
    """Return spectra that are `components` at the highest frequency and less extreme below."""
    rows = []
    for index, (kind, size, component) in enumerate(zip(kinds, sizes, components, strict=True)):
        for step in range(size // 2 + 1):
            frequency = step / (size // 2) if size > 1 else 0.0
            value = component * frequency**2 if size > 1 else 0.0
            rows.append((index, kind, size, size, measure, frequency, value))
    columns = ["index", "kind", "height", "width", "measure", "frequency", "delta_log_amplitude"]
    points = pd.DataFrame(rows, columns=columns).assign(model=model)
    return points.assign(depth=points["index"] / max(len(kinds) - 1, 1))


def in_fourier(kind: str, *tables: pd.DataFrame, theirs=None) -> pd.DataFrame:
    table = pd.concat(tables)
    models = list(dict.fromkeys(table["model"]))
    return count(kind, {"fourier": table, "blocks": table}, models, theirs)


KINDS_OF_VIT = ["stem"] + ["msa", "mlp"] * 12


def test_fig_8_is_counted_as_by_hand():
    curve = pd.read_csv(PUBLISHED / "fig8.csv")["delta_log_amplitude"].tolist()
    falls = sum(curve[i] < curve[i - 1] for i in range(1, 25, 2))
    rises = sum(curve[i] > curve[i - 1] for i in range(2, 25, 2))
    assert (falls, rises) == (9, 8)
    theirs = published("fourier_depth", "fig8.csv", vit="ViT")
    claims = in_fourier(
        "fourier_depth", fourier("vit", KINDS_OF_VIT, [14] * 25, curve), theirs=theirs
    )
    assert verdicts(claims) == {
        ("msa_reduces_high_frequency", "vit"): (9, 12, True),
        ("mlp_increases_high_frequency", "vit"): (8, 12, True),
    }
    assert claims["published_count"].tolist() == [9, 8]
    assert (
        claims["published_value"].tolist() == claims["measured_value"].tolist() == [9 / 12, 8 / 12]
    )
    assert claims["published_series"].tolist() == ["ViT", "ViT"]


@pytest.mark.parametrize("kind", ["fourier_depth", "fourier"])
def test_the_highest_frequency_of_the_diagonal_is_counted(kind):
    kinds = ["stem", "conv", "conv", "msa", "mlp"]
    diagonal = fourier("m", kinds, [8, 8, 4, 4, 4], [-5, -4, -3, -3.5, -3])
    radial = fourier("m", kinds, [8, 8, 4, 4, 4], [-1, -2, -3, -2, -3], measure="radial")
    assert verdicts(in_fourier(kind, diagonal, radial)) == {
        ("msa_reduces_high_frequency", "m"): (1, 1, True),
        ("conv_increases_high_frequency", "m"): (1, 1, True),
        ("mlp_increases_high_frequency", "m"): (1, 1, True),
        ("subsampling_increases_high_frequency", "m"): (1, 1, True),
    }


def test_claims_about_frequencies_can_fail():
    kinds = ["stem", "conv", "conv", "msa", "mlp"]
    table = fourier("m", kinds, [8, 8, 4, 4, 4], [-3, -4, -5, -4, -5])
    assert {verdict for _, _, verdict in verdicts(in_fourier("fourier", table)).values()} == {False}


def test_a_map_of_one_position_has_no_high_frequency():
    table = fourier("m", ["stem", "mlp", "mlp", "pool", "mlp"], [4, 4, 4, 1, 1], [-3, -2, -4, 0, 0])
    assert verdicts(in_fourier("fourier", table)) == {
        ("mlp_increases_high_frequency", "m"): (1, 2, False)
    }


def test_fig_2a_is_counted_as_by_hand():
    frame = pd.read_csv(PUBLISHED / "fig2a.csv").query("model == 'ResNet' and frequency == 1")
    curve = frame.sort_values("index")["delta_log_amplitude"].tolist()
    higher = sum(curve[j] > curve[i] for i in range(17) for j in range(i + 1, 17))
    assert (len(curve), higher) == (17, 126)
    sizes = [56] * 4 + [28] * 4 + [14] * 6 + [8] * 3
    table = fourier("resnet", ["stem"] + ["conv"] * 16, sizes, curve)
    theirs = published("fourier_curves", "fig2a.csv", resnet="ResNet", vit="ViT")
    vit = fourier("vit", KINDS_OF_VIT, [14] * 25, [0.0] * 25)
    claims = in_fourier("fourier_curves", table, vit, theirs=theirs)
    # The 17 curves have 17 x 16 / 2 pairs.
    assert verdicts(claims) == {("conv_model_raises_high_frequency", "resnet"): (126, 136, True)}
    assert claims["published_count"].tolist() == [126]
    assert claims["published_total"].tolist() == [136]


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(7)))
def test_pairs_are_counted_as_kendall_counts_them(ranks):
    table = fourier("m", ["stem"] + ["conv"] * 6, [4] * 7, [-float(rank + 1) for rank in ranks])
    ((count, total, holds),) = verdicts(in_fourier("fourier_curves", table)).values()
    # Of n (n - 1) / 2 pairs, tau is the share in favour less that against.
    tau = pd.Series([-rank for rank in ranks]).corr(pd.Series(range(7)), method="kendall")
    assert (count, total) == (pytest.approx(21 * (1 + tau) / 2), 21)
    assert holds == (count > 10.5)


@pytest.mark.parametrize(
    "kinds", [["stem", "msa", "mlp"], ["stem", "conv", "msa"], ["stem", "mlp"]]
)
def test_only_convolutional_models_are_to_raise_high_frequencies(kinds):
    assert in_fourier(
        "fourier_curves", fourier("m", kinds, [4] * len(kinds), range(len(kinds)))
    ).empty


def test_one_curve_has_no_depth():
    assert in_fourier("fourier_curves", fourier("m", ["conv", "conv"], [4, 1], [-1, 0])).empty


# Noise of one frequency


def noise(frequencies: list[float], **changes: list[float]) -> dict[str, pd.DataFrame]:
    table = pd.concat(
        pd.DataFrame({"model": model, "frequency": frequencies, "change": values})
        for model, values in changes.items()
    )
    return {"frequency_noise": table, "blocks": blocks(**{m: KINDS_OF[m] for m in changes})}


HIGH, LOW = "msa_withstands_high_frequency_noise", "conv_withstands_low_frequency_noise"


def test_fig_2b_is_counted_as_by_hand():
    curves = pd.read_csv(PUBLISHED / "fig2b.csv").pivot(
        index="frequency", columns="model", values="change"
    )
    vit_loses_less = (curves["ViT"] > curves["ResNet"]).tolist()
    assert vit_loses_less == [False] * 5 + [True] * 4
    frequencies = curves.index.tolist()
    tables = noise(frequencies, resnet=curves["ResNet"].tolist(), vit=curves["ViT"].tolist())
    theirs = published("frequency_noise", "fig2b.csv", resnet="ResNet", vit="ViT")
    claims = count("frequency_noise", tables, ["resnet", "vit"], theirs)
    expected = {(HIGH, "vit", "resnet"): (4, 4, True), (LOW, "vit", "resnet"): (4, 4, True)}
    assert verdicts(claims) == expected
    assert claims[["published_count", "published_total"]].to_numpy().tolist() == [[4, 4], [4, 4]]
    assert claims["published_series"].tolist() == ["ViT, ResNet"] * 2


def test_noise_is_judged_by_frequency():
    tables = noise(
        [0.2, 0.3, 0.5, 0.7, 0.8, 0.9],
        vit=[-1, -5, -9, -3, -2, -1],
        resnet=[-2, -4, -1, -3, -3, -2],
    )
    assert verdicts(count("frequency_noise", tables, ["vit", "resnet"])) == {
        (HIGH, "vit", "resnet"): (2, 3, True),
        (LOW, "vit", "resnet"): (1, 2, False),
    }


def test_noise_compares_every_model_that_attends_with_every_convolutional_one():
    models = ["mixer", "alternet", "resnet", "vit"]
    tables = noise([0.1, 0.9], **{model: [-1, -1] for model in models})
    assert list(verdicts(count("frequency_noise", tables, models))) == [
        (claim, model, "resnet") for model in ("alternet", "vit") for claim in (HIGH, LOW)
    ]


@pytest.mark.parametrize(
    ("frequencies", "vit"),
    [([0.5], [-1.0]), ([0.9, 0.1], [np.nan, np.nan])],
    ids=["the middle", "no value"],
)
def test_noise_that_says_nothing_is_judged_neither_way(frequencies, vit):
    tables = noise(frequencies, vit=vit, resnet=[-1.0] * len(frequencies))
    assert verdicts(count("frequency_noise", tables, ["vit", "resnet"])) == {
        (HIGH, "vit", "resnet"): (None, None, None),
        (LOW, "vit", "resnet"): (None, None, None),
    }


def test_both_published_curves_are_needed_for_a_comparison():
    tables = noise([0.1, 0.9], vit=[-2, -1], resnet=[-1, -2])
    theirs = published("frequency_noise", "fig2b.csv", vit="ViT")
    claims = count("frequency_noise", tables, ["vit", "resnet"], theirs)
    assert claims["holds"].tolist() == [True, True]
    assert claims[["published_series", "published_value"]].isna().all(axis=None)


# Removed units


def lesion(
    units: list[tuple[str, int, float]], sizes: list[int] | None = None
) -> dict[str, pd.DataFrame]:
    """Make the table of a model `m` from the kind, stage and change of each unit.

    `sizes` are the sides of the maps after the stem and each unit, if they are not all the same.
    """
    sizes = sizes or [8] * (len(units) + 1)
    table = pd.DataFrame(units, columns=["kind", "stage", "change"])
    table = table.assign(model="m", index=range(1, len(units) + 1))
    cuts = pd.concat([pd.DataFrame([{"kind": "stem", "stage": 0, "index": 0}]), table])
    cuts = cuts.assign(model="m", height=sizes, width=sizes)
    return {"lesion": table, "blocks": cuts}


def in_lesion(units: list[tuple[str, int, float]]) -> dict[tuple[str, ...], tuple]:
    return verdicts(count("lesion", lesion(units), ["m"]))


def test_fig_10b_is_counted_as_by_hand():
    frame = pd.read_csv(PUBLISHED / "fig10b_swin.csv").set_index("index")["change"]
    stages = [range(1, 4), range(5, 9), range(10, 22), range(23, 27)]
    assert sorted(unit for stage in stages for unit in stage) == frame.index.tolist()
    # Unit 0, the first MSA, is off the scale: the first stage has one MSA alone.
    mlps = [(1, 3), (6, 8), (11, 21), (24, 26)]
    msas = [(5, 7), (10, 20), (23, 25)]
    assert [frame[first] < frame[last] for first, last in mlps] == [True] * 4
    assert [frame[last] < frame[first] for first, last in msas] == [True] * 3
    theirs = published("lesion", "fig10b_swin.csv", m="Swin")
    claims = count("lesion", lesion([("mlp", 1, -1), ("mlp", 2, -1)]), ["m"], theirs)
    found = claims.set_index("claim")[["published_count", "published_total"]].to_numpy().tolist()
    assert claims["claim"].tolist() == ["first_mlp_of_stage_matters", "last_msa_of_stage_matters"]
    assert found == [[4, 4], [3, 3]]
    # Ours has one MLP in each stage: no first and last.
    assert claims["holds"].isna().all()


def stage(number: int, kind: str, *changes: float) -> list[tuple[str, int, float]]:
    return [(kind, number, change) for change in changes]


def test_the_ends_of_stages_decide():
    units = [
        *stage(1, "mlp", -5, 0, -1),
        *stage(2, "mlp", -1, -9, -2),
        *stage(3, "mlp", -3, -1),
        *stage(1, "msa", -5, -6),
        *stage(2, "msa", -2, -1),
        *stage(3, "msa", -2, -2),
    ]
    assert in_lesion(units) == {
        ("first_mlp_of_stage_matters", "m"): (2, 3, True),
        ("last_msa_of_stage_matters", "m"): (1, 3, False),
    }


def test_convs_are_to_matter_at_the_beginning():
    units = [*stage(1, "conv", -5, -1), *stage(2, "conv", -1, -2), *stage(2, "msa", -3)]
    assert in_lesion(units) == {("first_conv_of_stage_matters", "m"): (1, 2, False)}


def test_units_that_subsample_do_not_count():
    # By hand: without the unit that begins it, the second stage has -1 and -2, the third -3 alone.
    units = [*stage(1, "conv", -5, -1), *stage(2, "conv", -9, -1, -2), *stage(3, "conv", -9, -3)]
    tables = lesion(units, [32, 32, 32, 16, 16, 16, 8, 8])
    found = verdicts(count("lesion", tables, ["m"]))
    assert found == {("first_conv_of_stage_matters", "m"): (1, 2, False)}
    # Where a pool, which cannot be removed, has subsampled already, the unit after it counts.
    merging = {"model": "m", "index": 2.5, "kind": "pool", "stage": 2, "height": 16, "width": 16}
    tables["blocks"] = pd.concat([tables["blocks"], pd.DataFrame([merging])])
    found = verdicts(count("lesion", tables, ["m"]))
    assert found == {("first_conv_of_stage_matters", "m"): (2, 2, True)}


def test_a_model_whose_stages_have_nothing_else_has_no_claim_about_stages():
    units = [*stage(1, "conv", -5), *stage(2, "conv", -9, -1), *stage(3, "conv", -9, -3)]
    assert verdicts(count("lesion", lesion(units, [32, 32, 16, 16, 8, 8]), ["m"])) == {}


def test_one_stage_of_several_counts_where_the_others_have_nothing_else():
    units = [*stage(1, "conv", -5, -1), *stage(2, "conv", -9)]
    found = verdicts(count("lesion", lesion(units, [32, 32, 32, 16]), ["m"]))
    assert found == {("first_conv_of_stage_matters", "m"): (1, 1, True)}


def test_a_model_of_one_stage_has_no_claim_about_stages():
    units = [*stage(1, "msa", -1, -2), *stage(1, "mlp", -2, -1)]
    assert in_lesion(units) == {}


def test_a_stage_whose_end_has_no_value_is_not_counted():
    units = [*stage(1, "mlp", np.nan, -2, -1), *stage(2, "mlp", -3, -2, -1)]
    assert in_lesion(units) == {("first_mlp_of_stage_matters", "m"): (1, 1, True)}
    assert in_lesion([*stage(1, "mlp", np.nan, -2), *stage(2, "mlp", -3)]) == {}


# Similarity of feature maps


def similarity(stages: list[int], cka) -> dict[str, pd.DataFrame]:
    size = len(stages)
    pairs = [(i, j, cka(i, j)) for i in range(size) for j in range(size)]
    table = pd.DataFrame(pairs, columns=["index", "other_index", "cka"]).assign(model="m")
    cuts = pd.DataFrame({"model": "m", "index": range(size), "kind": "conv", "stage": stages})
    return {"cka": table, "blocks": cuts}


STAGES = [0, 1, 1, 1, 2, 2, 2, 2]


def test_stages_of_similar_maps_are_blocks():
    tables = similarity(STAGES, lambda i, j: 1.0 if STAGES[i] == STAGES[j] else 0.25)
    claims = count("cka", tables, ["m"])
    assert claims["measured_value"].tolist() == [pytest.approx(0.75)]
    assert claims["holds"].tolist() == [True]
    assert claims["measured_total"].isna().all()


def test_likeness_of_what_is_near_makes_no_block():
    tables = similarity(STAGES, lambda i, j: 0.5 ** abs(i - j))
    claims = count("cka", tables, ["m"])
    assert claims["measured_value"].tolist() == [pytest.approx(0, abs=1e-12)]


def test_stages_of_unlike_maps_are_no_blocks():
    tables = similarity(STAGES, lambda i, j: 0.2 if STAGES[i] == STAGES[j] else 0.3)
    assert count("cka", tables, ["m"])["holds"].tolist() == [False]


def test_similarity_is_averaged_over_distances_as_by_hand():
    pairs = pd.DataFrame(
        [
            (1, True, 0.9),
            (1, True, 0.7),
            (1, False, 0.5),
            (2, True, 0.6),
            (2, False, 0.5),
            (3, False, 0.1),
        ],
        columns=["distance", "within", "cka"],
    )
    found = within_over_between(pairs)
    assert found is not None
    assert found.value == pytest.approx(((0.8 - 0.5) + (0.6 - 0.5)) / 2)


@pytest.mark.parametrize(
    "stages", [[0, 1, 1, 1], [0, 1, 2, 3]], ids=["one stage", "no pairs within"]
)
def test_without_pairs_of_both_sorts_there_is_no_claim(stages):
    assert count("cka", similarity(stages, lambda i, j: 1.0), ["m"]).empty


def test_pairs_without_a_value_are_left_out():
    def cka(i, j):
        return np.nan if 7 in (i, j) else 1.0 if STAGES[i] == STAGES[j] else 0.25

    assert count("cka", similarity(STAGES, cka), ["m"])["measured_value"].tolist() == [0.75]


# Shape bias and robustness


def shape(**biases: tuple[float, float, float]) -> dict[str, pd.DataFrame]:
    rows = [
        {"model": model, "class_name": name, "shape_bias": bias, "ci_low": low, "ci_high": high}
        for model, (bias, low, high) in biases.items()
        for name in ("circle", "all")
    ]
    table = pd.DataFrame(rows)
    # The rows of single classes say the opposite.
    classes = table["class_name"] != "all"
    table.loc[classes, "shape_bias"] = 1 - table.loc[classes, "shape_bias"]
    return {"shape_texture": table, "blocks": blocks(**{m: KINDS_OF[m] for m in biases})}


@pytest.mark.parametrize(
    ("vit", "value", "holds", "apart"),
    [
        ((0.7, 0.65, 0.75), 0.3, True, True),
        ((0.45, 0.4, 0.5), 0.05, True, False),
        ((0.4, 0.35, 0.45), 0.0, False, False),
        ((0.2, 0.15, 0.25), -0.2, False, True),
        ((0.7, np.nan, np.nan), 0.3, True, None),
        ((np.nan, np.nan, np.nan), None, None, None),
    ],
)
def test_shape_biases_are_compared(vit, value, holds, apart):
    tables = shape(vit=vit, resnet=(0.4, 0.35, 0.45), mixer=(0.9, 0.8, 1.0))
    claims = count("shape_texture", tables, ["mixer", "resnet", "vit"])
    assert list(verdicts(claims)) == [("msa_goes_by_shape", "vit", "resnet")]
    (row,) = claims.astype(object).where(claims.notna(), None).to_dict("records")
    assert row["measured_value"] == (None if value is None else pytest.approx(value))
    assert (row["holds"], row["apart"]) == (holds, apart)
    assert (row["measured_count"], row["measured_total"]) == (None, None)


def corrupted(**errors: float) -> dict[str, pd.DataFrame]:
    rows = [
        {"model": model, "corruption": name, "error": value}
        for model, error in errors.items()
        for name, value in (("fog", 1 - error), ("mean", error))
    ]
    kinds_of = {model: KINDS_OF[model] for model in errors}
    return {"corruption_error": pd.DataFrame(rows), "blocks": blocks(**kinds_of)}


@pytest.mark.parametrize(
    ("error", "holds"), [(0.25, True), (0.3, False), (0.4, False), (np.nan, None)]
)
def test_hybrids_are_to_be_more_robust_than_convs_alone(error, holds):
    tables = corrupted(resnet=0.3, vit=0.1, alternet=error, mixer=0.1)
    claims = count("robustness", tables, ["resnet", "vit", "alternet", "mixer"])
    assert verdicts(claims) == {
        ("msa_makes_convs_robust", "alternet", "resnet"): (None, None, holds)
    }
    if holds is not None:
        assert claims["measured_value"].tolist() == [pytest.approx(0.3 - error)]


@pytest.mark.parametrize("models", [["vit", "mixer"], ["resnet"], ["alternet", "vit"]])
@pytest.mark.parametrize("kind", ["shape_texture", "robustness", "frequency_noise"])
def test_without_a_pair_there_is_no_comparison(kind, models):
    tables = (
        shape(**dict.fromkeys(models, (0.5, 0.4, 0.6)))
        | corrupted(**dict.fromkeys(models, 0.5))
        | noise([0.1, 0.9], **{model: [-1, -2] for model in models})
    )
    assert count(kind, tables, models).empty


# The loss


def losses(name: str, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    kinds_of = {model: KINDS_OF[model] for model in table["model"].unique()}
    return {name: table, "blocks": blocks(**kinds_of)}


def landscapes(**steepness: float) -> pd.DataFrame:
    steps = [-1.0, -0.5, 0.0, 0.5, 1.0]
    rows = [
        {"model": model, "x": x, "y": y, "nll": a * (x * x + 2 * y * y)}
        for model, a in steepness.items()
        for y in steps
        for x in steps
    ]
    table = pd.DataFrame(rows)
    return table.assign(loss=table["nll"] + 1)


def spectra_of(**eigenvalues: list[float]) -> pd.DataFrame:
    rows = [
        {"model": m, "snapshot": "end", "batch": batch, "eigenvalue": each}
        for m, values in eigenvalues.items()
        for batch, each in enumerate(values)
    ]
    return pd.DataFrame(rows)


def fits(**values: float) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"model": m, "metric": metric, "value": v, "ci_low": v - 0.1, "ci_high": v + 0.1}
            for m, v in values.items()
            for metric in ("error_percent", "nll_train")
        ]
    )


# All kinds


def everything() -> dict[str, dict[str, pd.DataFrame]]:
    kinds = ["stem", "conv", "conv", "msa", "mlp"]
    convs = fourier("m", ["conv"] * 3, [4] * 3, [1, 3, 2])
    spectra = fourier("m", kinds, [8, 8, 8, 4, 4], [1, 3, 2, 1, 4])
    variance = spectra.drop_duplicates("index").assign(variance=[1.0, 2, 5, 4, 3])
    units = [*stage(1, "conv", -2, -1), *stage(2, "conv", -2, -3), *stage(3, "msa", -2, -3)]
    return {
        "feature_variance": {"feature_variance": variance, "blocks": variance},
        "fourier_curves": {"fourier": convs, "blocks": convs},
        "fourier_depth": {"fourier": spectra, "blocks": spectra},
        "fourier": {"fourier": spectra, "blocks": spectra},
        "frequency_noise": noise([0.1, 0.2, 0.9], vit=[-1, -2, -3], resnet=[-2, -1, -4]),
        "cka": similarity(STAGES, lambda i, j: (i * j) / 64),
        "lesion": lesion(units),
        "shape_texture": shape(vit=(0.7, 0.6, 0.8), resnet=(0.4, 0.3, 0.5)),
        "robustness": corrupted(alternet=0.2, resnet=0.3),
        "landscape": losses("landscape", landscapes(vit=2.0, resnet=3.0)),
        "hessian": losses("hessian", spectra_of(vit=[-1.0, 2.0, 3.0], resnet=[20.0, 30.0])),
        "fit": losses("fit", fits(vit=2.0, resnet=1.0)),
    }


def models_of(tables: dict[str, pd.DataFrame]) -> list[str]:
    return list(dict.fromkeys(tables["blocks"]["model"]))


@pytest.mark.parametrize("kind", EVIDENCE)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_matter(kind, seed):
    tables = everything()[kind]
    shuffled = {name: table.sample(frac=1, random_state=seed) for name, table in tables.items()}
    models = models_of(tables)
    pd.testing.assert_frame_equal(count(kind, shuffled, models), count(kind, tables, models))


@pytest.mark.parametrize("kind", EVIDENCE)
def test_every_row_keeps_its_promises(kind, tmp_path):
    tables = everything()[kind]
    claims = count(kind, tables, models_of(tables))
    assert len(claims)
    CLAIMS.write(claims, tmp_path / "claims")
    back = CLAIMS.read(tmp_path / "claims")
    for row in back.to_dict("records"):
        assert row["holds"] == (row["measured_value"] > row["holds_above"])
        assert row["measure"].startswith(("share of ", "difference of "))
        if row["measure"].startswith("share of "):
            assert row["measured_value"] == row["measured_count"] / row["measured_total"]
        elif pd.notna(row["measured_total"]):
            theirs = row["versus_count"] / row["versus_total"]
            ours = row["measured_count"] / row["measured_total"]
            assert row["measured_value"] == pytest.approx(ours - theirs)
        if pd.notna(row["ci_low"]):
            assert row["ci_low"] <= row["measured_value"] <= row["ci_high"]


def test_kinds_and_tables_are_those_of_figures():
    for kind, evidence in EVIDENCE.items():
        assert evidence.table.name in kinds()[kind].tables
        assert set(evidence.table.columns) >= {"model"}


def test_claims_have_names_of_their_own_and_say_how_they_are_counted():
    claims = {claim for evidence in EVIDENCE.values() for claim in evidence.claims}
    assert len({claim.name for claim in claims}) == len(claims)
    assert all(claim.rule.endswith(".") and "paper" in claim.rule for claim in claims)
    assert all(not claim.statement.endswith(".") for claim in claims)


def test_a_study_without_claims_says_so(tmp_path):
    claims, agreement = joined(CLAIMS, []), joined(AGREEMENT, [])
    for table, frame in ((CLAIMS, claims), (AGREEMENT, agreement)):
        table.write(frame, tmp_path / table.name)
        assert table.read(tmp_path / table.name).empty
    assert sections(claims, agreement, {}, []) == []
    assert introduction(claims).startswith("None of this study's figures")
