from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from tests.helpers.claims import published
from tests.helpers.drawing import RESNET, VIT, drawn_from, laid_out
from tests.helpers.shown import flaws, legend_labels
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import moment
from vitscope.measures.captions import caption_of
from vitscope.measures.hessian.show import KERNEL, bars_of_hessian_density, density_per_decade
from vitscope.measures.registry import kinds
from vitscope.package_data import PUBLISHED_POINTS

VIT_6 = Member("vit_6", "ViT (6 %)", "vit")
BOTH = (RESNET, VIT)
MEMBERS = (*BOTH, VIT_6)
SERIES = {"resnet": "ResNet", "vit": "ViT", "vit_6": "ViT (6%)"}
MAGNITUDES = {"resnet": 300.0, "vit": 20.0, "vit_6": 35.0}
SHARES = {"resnet": 0.0, "vit": 0.3, "vit_6": 0.4}


def rows_of(model: str, snapshot: str, batches: int = 6) -> pd.DataFrame:
    """Return the spectra of a model, which has its own magnitudes and share of negative ones."""
    random = np.random.default_rng([len(model), len(snapshot)])
    count = 5 * batches
    values = MAGNITUDES[model] * 10 ** random.normal(0, 0.3, count)
    values[: round(SHARES[model] * count)] *= -1
    batch, rank = (each.ravel() for each in np.indices((batches, 5)))
    table = pd.DataFrame({"batch": batch, "rank": 1 + rank, "eigenvalue": values})
    known = {"images": 100, "training_batch": 100, "converged": True, "bundled": False}
    return table.assign(model=model, snapshot=snapshot, **known)


TABLE = pd.concat([rows_of(model, snapshot) for snapshot in ("warmup", "end") for model in SERIES])


def drawn(members=MEMBERS, published=None, table=TABLE, snapshots=("warmup", "end")):
    return laid_out("hessian", {"hessian": table}, members, published, snapshots)


def of_moments(figure: Figure) -> dict[str, list[list[Axes]]]:
    return {
        part.get_suptitle(): [part.axes[at : at + 2] for at in range(0, len(part.axes), 2)]
        for part in figure.subfigs
    }


def test_a_row_per_model_shows_every_eigenvalue_at_each_moment() -> None:
    found = of_moments(drawn(snapshots=("end", "warmup")))
    assert [*found] == ["end of training", "end of warm-up"]
    for snapshot, rows in zip(("end", "warmup"), found.values(), strict=True):
        for model, pair in zip(SERIES, rows, strict=True):
            of_model = TABLE.query(f"model == '{model}' and snapshot == '{snapshot}'")
            values = of_model["eigenvalue"].to_numpy()
            for axes, sign in zip(pair, (-1, 1), strict=True):
                curve, mark = axes.lines
                same = values[np.sign(values) == sign]
                np.testing.assert_array_equal(mark.get_xdata(), same)
                at = curve.get_xdata()
                np.testing.assert_array_equal(curve.get_ydata(), density_per_decade(values, at))
                assert (np.sign(at) == sign).all()
                low, high = axes.get_xlim()
                assert ((same > low) & (same < high)).all()


def test_no_model_is_told_by_its_colour_alone() -> None:
    """Each model has panels and a name, even if its colour is that of another to some people."""
    ((_, rows),) = of_moments(drawn(snapshots=["warmup"])).items()
    names = [pair[0].get_title(loc="left").split(":")[0] for pair in rows]
    assert names == [member.label for member in MEMBERS]
    # All panels have the same scale, so that areas can be compared.
    assert len({axes.get_ylim() for pair in rows for axes in pair}) == 1
    assert len({axes.get_xlim() for axes, _ in rows}) == 1


def test_the_kernel_is_as_wide_as_stated() -> None:
    at = np.array([10.0, 10 ** (1 + KERNEL), 10 ** (1 - KERNEL)])
    density = density_per_decade(np.array([10.0, -3.0]), at)
    peak = 1 / (np.sqrt(2 * np.pi) * KERNEL) / 2
    np.testing.assert_allclose(density, peak * np.exp([0, -0.5, -0.5]))
    caption = " ".join(caption_of(kinds()["hessian"]).split())
    assert f"a Gaussian kernel of {KERNEL:g} decades" in caption


def test_a_row_tells_the_share_of_negative_eigenvalues() -> None:
    table = TABLE.copy()
    doubtful = (table["model"] == "vit") & (table["rank"] == 5) & (table["batch"] < 2)
    table.loc[doubtful & (table["snapshot"] == "end"), "converged"] = False
    warmup, end = of_moments(drawn(table=table)).values()
    said = [axes.get_title(loc="left") for axes, _ in warmup]
    in_batches = "negative in batches of 100 images"
    # Negative are the first 9 and 12 of 30 eigenvalues; Student's intervals of six batches, which
    # end where shares end.
    for title, share, counts in zip(said[1:], (30, 40), ([5, 4], [5, 5, 2]), strict=True):
        shares = np.array([*counts, *[0] * (6 - len(counts))]) / 5
        ends = stats.t.interval(0.95, 5, shares.mean(), stats.sem(shares))
        low, high = (f"{100 * end:.0f}" for end in np.clip(ends, 0, 1))
        assert title.partition(": ")[2] == f"{share} % ({low} to {high}) {in_batches}"
    doubted = end[1][0].get_title(loc="left")
    assert doubted == f"ViT-Ti: 30 % (0 to 79) {in_batches} (2 of 30 not converged)"


def test_a_share_that_all_batches_have_has_no_interval() -> None:
    table = TABLE.assign(eigenvalue=TABLE["eigenvalue"].abs() * np.where(TABLE["rank"] == 5, -1, 1))
    ((pair, *_),) = of_moments(drawn(snapshots=["end"], table=table)).values()
    assert pair[0].get_title(loc="left").startswith("ResNet-50: 20 % negative in ")


def test_a_panel_says_that_no_eigenvalue_is_negative() -> None:
    for members in ([RESNET], [RESNET, VIT]):
        (rows,) = of_moments(drawn(members=members, snapshots=["end"])).values()
        negative, positive = rows[0]
        assert [text.get_text() for text in negative.texts] == ["none"]
        assert not positive.texts
        assert len(positive.lines) == 2
        assert negative.get_title(loc="left") == "ResNet-50: 0 % negative in batches of 100 images"


def test_an_eigenvalue_of_zero_is_of_neither_sign() -> None:
    table = TABLE.copy()
    table.loc[table["rank"] == 5, "eigenvalue"] = 0.0
    ((negative, positive),) = of_moments(drawn([VIT], table=table))["end of warm-up"]
    values = table.query("model == 'vit' and snapshot == 'warmup'")["eigenvalue"]
    shown = [len(axes.lines[1].get_xdata()) for axes in (negative, positive)]
    assert shown == [(values < 0).sum(), (values > 0).sum()]


def test_published_densities_are_of_the_same_unit_and_on_the_same_scale() -> None:
    theirs = published("hessian", "fig4_hessian.csv", SERIES)
    (rows,) = of_moments(drawn(published=theirs, snapshots=["warmup"])).values()
    file = pd.read_csv(PUBLISHED_POINTS / "fig4_hessian.csv")
    for series, pair in zip(SERIES.values(), rows, strict=True):
        area = 0.0
        for axes, (panel, sign) in zip(pair, (("negative", -1), ("positive", 1)), strict=True):
            theirs = file[(file["model"] == series) & (file["panel"] == panel)]
            area += np.trapezoid(theirs["density"], theirs["eigenvalue"])
            theirs = theirs[np.sign(theirs["eigenvalue"]) == sign]
            # The density is per decade of magnitude, as for measured eigenvalues.
            expected = theirs["density"] * theirs["eigenvalue"].abs() * np.log(10)
            line = axes.lines[-1]
            np.testing.assert_allclose(line.get_xydata(), np.c_[theirs["eigenvalue"], expected])
            assert axes.get_ylim()[1] > expected.max()
        # Both areas add up to 1, except for what lies beyond the published axis.
        assert 0.85 < area < 1.02


@pytest.mark.parametrize(
    ("magnitudes", "expected"),
    [
        ((1, 2e5), (["10^{5}", "10^{4}"], ["10^{0}", "10^{1}"])),
        # With the reach of the kernel, the axis goes from 50 to 800.
        ((100, 400), (["\N{MINUS SIGN}300", "\N{MINUS SIGN}100"], ["100", "300"])),
        (
            (1, 2000),
            ([f"\N{MINUS SIGN}{each}" for each in (1000, 100, 10, 1)], ["1", "10", "100", "1000"]),
        ),
    ],
)
def test_few_decades_have_labels_between_powers_of_ten(magnitudes, expected) -> None:
    values = np.geomspace(*magnitudes, 15)
    table = rows_of("vit", "end").assign(eigenvalue=np.concatenate([values, -values]))
    figure = drawn([VIT], table=table, snapshots=("end",))
    assert flaws(figure) == []
    for axes, labels in zip(figure.subfigs[0].axes, expected, strict=True):
        shown = [text.get_text() for text in axes.get_xticklabels()]
        assert all(label in text for label, text in zip(labels, shown, strict=False))


# Batches of six images have more negative eigenvalues and ten times the magnitude; the training
# batch is of 100 images, and batches of 400 say nothing of it.
FEW = TABLE.assign(images=6, eigenvalue=10 * TABLE["eigenvalue"])
FEW.loc[(FEW["rank"] == 1) & (FEW["model"] != "resnet"), "eigenvalue"] *= -1
LARGE = TABLE.assign(images=400, eigenvalue=TABLE["eigenvalue"].abs())
SIZES = pd.concat([FEW, TABLE.assign(bundled=True), LARGE])


def test_a_spectrum_is_that_of_the_training_batch_with_the_smallest_beside_it() -> None:
    figure = drawn(table=SIZES, snapshots=["warmup"])
    ((title, rows),) = of_moments(figure).items()
    assert title == "end of warm-up\nbatches of 100 images: bundled spectra"
    for model, pair in zip(SERIES, rows, strict=True):
        for axes in pair:
            curve, few, mark = axes.lines
            for line, table in ((curve, TABLE), (few, FEW)):
                of_model = table.query(f"model == '{model}' and snapshot == 'warmup'")
                expected = density_per_decade(of_model["eigenvalue"].to_numpy(), line.get_xdata())
                np.testing.assert_array_equal(line.get_ydata(), expected)
            assert len(mark.get_xdata()) <= 30
    assert legend_labels(figure.subfigs[0]) == ["batches of 100 images", "batches of 6"]
    assert flaws(figure) == []


@pytest.mark.parametrize("batches", [6, 12])
def test_shares_and_magnitudes_are_drawn_over_batch_sizes(batches: int) -> None:
    again = SIZES.assign(batch=SIZES["batch"] + 6) if batches == 12 else SIZES[:0]
    table = pd.concat([SIZES, again])
    figure = laid_out("hessian_by_batch", {"hessian": table}, BOTH, None, ("warmup", "end"))
    upper, lower = figure.axes[:2], figure.axes[2:]
    for above, below, snapshot in zip(upper, lower, ("warmup", "end"), strict=True):
        for member in BOTH:
            rows = table.query(f"model == '{member.model}' and snapshot == '{snapshot}'")
            of_batches = rows.groupby(["images", "batch"])["eigenvalue"]
            shares = of_batches.apply(lambda values: (values < 0).mean())
            largest = of_batches.apply(lambda values: values.abs().max())
            for axes, each in (
                (above, shares.groupby("images").mean()),
                (below, largest.groupby("images").median()),
            ):
                curves = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 3]
                assert any(np.allclose(curve, each) for curve in curves)
            # Few batches are drawn one by one, many have an interval.
            dots = [line for line in above.lines if len(line.get_xdata()) == 6]
            assert len(dots) == (6 if batches == 6 else 0)
    found = legend_labels(figure)
    said = [label for label in found if label in ("one batch", "95 % interval")]
    assert said == (["one batch"] if batches == 6 else ["95 % interval"])
    assert {"batch of the training", *(member.label for member in BOTH)} <= {*found}
    assert figure.get_suptitle().strip() == "batches of 100 images: bundled spectra"
    assert flaws(figure) == []


BLOCKS = pd.concat(
    pd.DataFrame({"index": range(3), "depth": [0, 0.5, 1], "kind": ["stem", "msa", "conv"]}).assign(
        model=member.model, height=4, width=4
    )
    for member in BOTH
)
LAYERS = {0: "stem", 4: "convolution", 7: "head"}


def rows_of_curvature(model: str, snapshot: str) -> pd.DataFrame:
    """Return four batches of all parts; the head is the block after the last cut point."""
    random = np.random.default_rng([len(model), len(snapshot)])
    parts = [("network", 0, "network")]
    parts += [("block", index, part) for index, part in enumerate(["stem", "a", "b", "head"])]
    parts += [("layer", index, part) for index, part in LAYERS.items()]
    rows = pd.DataFrame(parts * 4, columns=["of", "index", "part"])
    values = random.lognormal(size=(3, len(rows)))
    return rows.assign(
        model=model,
        snapshot=snapshot,
        batch=np.repeat(range(4), len(parts)),
        parameters=10 + rows["index"],
        trace=values[0] - values[1],
        gauss_newton_trace=values[0],
        eigenvalue=np.where(values[1] > 2, -1, 1) * values[2],
        converged=True,
    )


CURVATURE_TABLE = pd.concat(
    [rows_of_curvature(m.model, s) for s in ("end", "warmup") for m in BOTH]
)


def of_curvature(
    kind: str, table: pd.DataFrame = CURVATURE_TABLE, snapshots: Sequence[str] = ("end",)
) -> Figure:
    return drawn_from(kind, {"curvature": table, "blocks": BLOCKS}, BOTH, {}, snapshots)


def means(model: str, snapshot: str, of: str) -> pd.DataFrame:
    rows = CURVATURE_TABLE.query(
        f"model == '{model}' and snapshot == '{snapshot}' and of == '{of}'"
    )
    drawn = rows.assign(
        magnitude=rows["eigenvalue"].abs(),
        mean=rows["trace"] / rows["parameters"],
        linear=rows["gauss_newton_trace"] / rows["parameters"],
    )
    return drawn.groupby("index")[["magnitude", "mean", "linear"]].mean()


@pytest.mark.parametrize("snapshots", [("end",), ("warmup", "end")])
def test_curves_are_the_means_of_blocks_in_their_bands(snapshots) -> None:
    figure = of_curvature("curvature", snapshots=snapshots)
    shown = [(member, each, row) for each in snapshots for row in (0, 1) for member in BOTH]
    for axes, (member, snapshot, row) in zip(figure.axes, shown, strict=True):
        expected = means(member.model, snapshot, "block").loc[:2]
        lines = [line for line in axes.lines if len(line.get_xdata()) == 3]
        curves = [line.get_xydata() for line in lines if line.get_linestyle() != "None"]
        # Four batches are too few for an interval, so that each of them is drawn.
        batches = [line.get_ydata() for line in lines if line.get_linestyle() == "None"]
        assert len(batches) == 4
        assert not axes.collections
        names = ["linear", "mean"] if row else ["magnitude"]
        np.testing.assert_allclose(np.mean(batches, axis=0), expected[names[-1]])
        for curve, name in zip(curves, names, strict=True):
            np.testing.assert_allclose(curve[:, 0], [0, 0.25, 0.75])
            np.testing.assert_allclose(curve[:, 1], expected[name])
        if row == 0:
            several = f"{member.label}, {moment(snapshot)}"
            assert axes.get_title() == (several if len(snapshots) > 1 else member.label)


def test_rows_are_the_means_of_kinds_of_layers() -> None:
    left, right = of_curvature("curvature_by_layer").axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["network", *LAYERS.values()]
    for nth, member in enumerate(BOTH):
        expected = pd.concat([means(member.model, "end", of) for of in ("network", "layer")])
        at = np.arange(4) + [-0.25, 0.25][nth]
        curve, *batches = [line.get_xydata() for line in left.lines[5 * nth :][:5]]
        np.testing.assert_allclose(curve, np.c_[expected["magnitude"], at])
        np.testing.assert_allclose(np.mean(batches, axis=0), curve)
        for name, line in zip(("linear", "mean"), right.lines[10 * nth :][:10:5], strict=True):
            np.testing.assert_allclose(line.get_xydata(), np.c_[expected[name], at])


def test_figures_of_curvature_say_what_has_not_converged() -> None:
    failed = (CURVATURE_TABLE["batch"] == 2) & CURVATURE_TABLE["part"].isin(["a", "head"])
    table = CURVATURE_TABLE.assign(converged=~(failed & (CURVATURE_TABLE["model"] == "vit")))
    by_depth = of_curvature("curvature", table)
    # The block of the head is not drawn; the head is drawn among the kinds of layers.
    titles = [" ".join(axes.get_title().split()) for axes in by_depth.axes[:2]]
    assert titles == [BOTH[0].label, f"{BOTH[1].label} (1 of 12 not converged)"]
    (legend,) = of_curvature("curvature_by_layer", table).legends
    said = [text.get_text() for text in legend.get_texts()]
    assert said[:2] == [BOTH[0].label, f"{BOTH[1].label} (1 of 16 not converged)"]


def test_an_axis_of_means_ends_at_zero_where_none_is_negative() -> None:
    traces = 10.0 ** (2 - 3 * CURVATURE_TABLE["index"])
    positive = CURVATURE_TABLE.assign(trace=traces, gauss_newton_trace=traces)
    for axes in of_curvature("curvature", positive).axes[2:]:
        assert -axes.yaxis.get_transform().linthresh < axes.get_ylim()[0] < 0


def test_labels_of_both_signs_have_room() -> None:
    traces = CURVATURE_TABLE["part"].map({"stem": -20, "convolution": 200}).fillna(0.1)
    both = CURVATURE_TABLE.assign(trace=traces, gauss_newton_trace=traces.abs())
    figure = of_curvature("curvature_by_layer", both)
    figure.draw_without_rendering()
    right = figure.axes[1]
    ends = [label.get_window_extent().intervalx for label in right.get_xticklabels()]
    shown = np.sort([each for each in ends if each[0] < each[1]], axis=0)
    assert len(shown) > 3
    assert (shown[1:, 0] > shown[:-1, 1]).all()
    assert "one batch" in legend_labels(figure)
    many = pd.concat(both.assign(batch=both["batch"] + 4 * n) for n in range(3))
    assert legend_labels(of_curvature("curvature_by_layer", many))[-1] == "95 % interval"


def rows_of_density(model: str, snapshot: str) -> pd.DataFrame:
    """Return four quadratures of eleven nodes, with nearly all of the weight near zero."""
    random = np.random.default_rng([len(model), len(snapshot)])
    weights = random.random((4, 11)) * np.geomspace(1, 1e-6, 11)
    weights /= weights.sum(axis=1, keepdims=True)
    nodes = np.r_[0, -np.geomspace(1, 40, 4), np.geomspace(1, 300, 6)] + random.random((4, 11))
    batch, probe, _ = (each.ravel() for each in np.indices((2, 2, 11)))
    values = {"node": nodes.ravel(), "weight": weights.ravel()}
    table = pd.DataFrame({"batch": batch, "probe": probe, **values})
    return table.assign(model=model, snapshot=snapshot)


DENSITY_TABLE = pd.concat(
    rows_of_density(member.model, each) for each in ("warmup", "end") for member in BOTH
)


def test_bars_have_the_share_of_the_nodes_within_them() -> None:
    tables = {"hessian_density": DENSITY_TABLE}
    figure = drawn_from("hessian_density", tables, BOTH, {}, ("end", "warmup"))
    shown = [(member, snapshot) for snapshot in ("end", "warmup") for member in BOTH]
    moments = {"end": "end of training", "warmup": "end of warm-up"}
    for axes, (member, snapshot) in zip(figure.axes, shown, strict=True):
        rows = DENSITY_TABLE.query(f"model == '{member.model}' and snapshot == '{snapshot}'")
        low, high = rows["node"].min(), rows["node"].max()
        said = f"from {low:.4g} to {high:.4g}".replace("-", "\N{MINUS SIGN}")
        assert axes.get_title() == f"{member.label}, {moments[snapshot]}\n{said}"
        shares, ends, _ = axes.patches[0].get_data()
        assert shares.sum() == pytest.approx(1)
        for share, left, right in zip(shares[:-1], ends[:-2], ends[1:-1], strict=True):
            inside = (rows["node"] >= left) & (rows["node"] < right)
            assert share == pytest.approx(rows["weight"][inside].sum() / 4)
        # The bars reach from the lowest node to the highest.
        assert (ends[0], ends[-1]) == (low, high)
        assert axes.get_ylim()[0] < shares[shares > 0].min()


def test_a_high_eigenvalue_makes_no_tail_below_the_lowest() -> None:
    nodes = np.array([-46.0, -0.5, 0.2, 0.3, 2052.0])
    shares, ends, linear = bars_of_hessian_density(nodes, np.full(5, 0.2))
    assert ends[0] == -46
    assert not shares[(ends[1:] < -1)][1:].any()
    assert linear == 1


def test_nodes_that_are_all_alike_have_one_bar() -> None:
    shares, ends, _ = bars_of_hessian_density(np.full(3, -2.0), np.full(3, 1 / 3))
    assert shares.tolist() == pytest.approx([1])
    assert ends.tolist() == [-2, -2]
