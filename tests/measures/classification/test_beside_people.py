from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from tests.helpers.drawing import drawn_from
from tests.helpers.refusals import refusal
from tests.helpers.shown import legend_labels
from tests.helpers.shown_sets import (
    NamesRed,
    built_set,
    decision_on,
    files_of,
    table_at_random,
    write_files,
)
from tests.helpers.splits import shapes
from vitscope.data.shown_images import read_shown_conditions, read_shown_images
from vitscope.data.sources.model_vs_human import SOURCE
from vitscope.data.split import Split
from vitscope.drawing.figure import Member
from vitscope.jobs.tables import find_table
from vitscope.measures.classification.beside_people import (
    MEAN,
    compare_on_set,
    compare_with_people,
    measure_beside_people,
    read_people_right,
)
from vitscope.measures.classification.shape_texture import read_people
from vitscope.measures.given import OnPredictions
from vitscope.networks.running.predictions import predict

# Of conditions: the accuracy of each person, and the mean kappa of two people. Counted with csv and
# loops alone from raw-data/ of github.com/bethgelab/model-vs-human at 79ed7cd.
COUNTED = {
    ("colour", "bw"): ([0.9140625, 0.8859375, 0.8703125, 0.8765625], 0.415432),
    ("contrast", "c05"): ([0.28125, 0.275, 0.3875, 0.46875], 0.441621),
    ("eidolonII", "16-3-10"): ([0.275, 0.2, 0.25625, 0.1875], 0.317898),
    ("high-pass", "inf"): ([0.8, 0.9, 0.925, 0.90625], 0.440615),
    ("high-pass", "0.7"): ([0.19375, 0.41875, 0.39375, 0.40625], 0.327977),
    ("low-pass", "1"): ([0.90625, 0.93125, 0.925, 0.89375], 0.549732),
    ("low-pass", "40"): ([0.05625, 0.05625, 0.05, 0.08125], 0.039934),
    ("rotation", "270"): ([0.846875, 0.821875, 0.878125, 0.8375], 0.349843),
    ("uniform-noise", "0.35"): ([0.4125, 0.4375, 0.3875, 0.35625], 0.434173),
    ("stylized", "0"): ([0.515, 0.3975, 0.4025, 0.52875, 0.5125], 0.500582),
}
# The same of sets: the means over the conditions that count.
COUNTED_OF_SETS = {
    "colour": (0.886719, 0.415432),
    "contrast": (0.660937, 0.437025),
    "edge": (0.871250, 0.318436),
    "eidolonI": (0.607500, 0.386336),
    "eidolonII": (0.582813, 0.454018),
    "eidolonIII": (0.639062, 0.459532),
    "false-colour": (0.873661, 0.444045),
    "high-pass": (0.628906, 0.440141),
    "low-pass": (0.661250, 0.468879),
    "phase-scrambling": (0.687891, 0.446673),
    "power-equalisation": (0.758929, 0.510632),
    "rotation": (0.829948, 0.438509),
    "silhouette": (0.753125, 0.475709),
    "sketch": (0.916250, 0.369620),
    "stylized": (0.471250, 0.500582),
    "uniform-noise": (0.682813, 0.434057),
}


def of_person(name: str, person: int = 0) -> pd.DataFrame:
    """Return the table of a person in place of a network, by condition."""
    right = read_people_right(name)[person]
    return compare_on_set(name, np.arange(len(right)), right, 20, 0).set_index("condition")


def test_people_are_as_counted_from_the_raw_files() -> None:
    for (name, condition), (accuracies, kappa) in COUNTED.items():
        row = of_person(name).loc[condition]
        assert row["people"] == len(accuracies)
        assert row["accuracy"] == pytest.approx(accuracies[0], abs=1e-12)
        assert row["people_accuracy"] == pytest.approx(np.mean(accuracies), abs=1e-12)
        assert row["people_accuracy_lowest"] == pytest.approx(min(accuracies), abs=1e-12)
        assert row["people_accuracy_highest"] == pytest.approx(max(accuracies), abs=1e-12)
        assert row["people_consistency"] == pytest.approx(kappa, abs=1e-6)


def test_means_over_conditions_are_as_counted_from_the_raw_files() -> None:
    """Over all 17 sets, with that of the cues, people are right about 72.3 % of the images."""
    assert sorted(COUNTED_OF_SETS) == sorted(SOURCE["keys"]["set"]["enum"])
    for name, (accuracy, kappa) in COUNTED_OF_SETS.items():
        row = of_person(name).loc[MEAN]
        assert row["people_accuracy"] == pytest.approx(accuracy, abs=1e-6)
        assert row["people_consistency"] == pytest.approx(kappa, abs=1e-6)
        # A person agrees in full with themselves, as one of the people.
        people = row["people"]
        own = row["people_consistency_lowest"], row["people_consistency_highest"]
        found = (row["consistency"] * people - 1) / (people - 1)
        assert own[0] - 1e-9 <= found <= own[1] + 1e-9
    cues = read_people("cue_conflict.csv").mean()
    of_sets = [cues, *(accuracy for accuracy, _ in COUNTED_OF_SETS.values())]
    assert np.mean(of_sets) == pytest.approx(0.722815, abs=1e-6)


def test_conditions_count_whose_images_are_changed_and_that_people_often_name() -> None:
    for name in COUNTED_OF_SETS:
        conditions, shown = read_shown_conditions(name), read_shown_images(name)
        right = pd.Series(read_people_right(name).mean(axis=0))
        named = right.groupby(shown["condition"]).mean()[conditions["condition"]].to_numpy()
        changed = (np.arange(len(conditions)) > 0) | (len(conditions) == 1)
        assert ((conditions["counted"] == "1") == (changed & (named > 0.2))).all(), name


@pytest.mark.parametrize(("name", "condition"), [("low-pass", "10"), ("silhouette", "0")])
def test_kappas_are_those_of_scikit_learn(name: str, condition: str) -> None:
    chosen = (read_shown_images(name)["condition"] == condition).to_numpy()
    people = read_people_right(name)[:, chosen]
    kappas = [cohen_kappa_score(*pair) for pair in combinations(people, 2)]
    row = of_person(name).loc[condition]
    assert row["people_consistency"] == pytest.approx(np.mean(kappas), abs=1e-12)
    drawn = np.random.default_rng(0).random(chosen.sum()) < 0.5
    found = compare_with_people(drawn, people, 20, 0)
    expected = np.mean([cohen_kappa_score(drawn, each) for each in people])
    assert found.values.tolist() == pytest.approx([drawn.mean(), expected], abs=1e-12)
    each = [
        np.mean([cohen_kappa_score(one, other) for other in np.delete(people, nth, axis=0)])
        for nth, one in enumerate(people)
    ]
    np.testing.assert_allclose(found.people[1], each, atol=1e-12)


def test_intervals_resample_the_images_of_each_condition() -> None:
    name, resamples = "phase-scrambling", 30
    shown, conditions = read_shown_images(name), read_shown_conditions(name)
    right = np.random.default_rng(1).random(len(shown)) < 0.6
    table = compare_on_set(name, np.arange(len(shown)), right, resamples, 5)
    people, every = read_people_right(name), []
    for nth, row in conditions.iterrows():
        of = np.flatnonzero(shown["condition"] == row["condition"])
        generator, scores = np.random.default_rng(5 + nth), []
        for weights in generator.multinomial(160, np.full(160, 1 / 160), size=resamples):
            rows = np.repeat(of, weights)
            kappas = [cohen_kappa_score(right[rows], each[rows]) for each in people]
            scores.append((right[rows].mean(), np.mean(kappas)))
        every += [scores] if row["counted"] == "1" else []
        low, high = np.percentile(scores, [2.5, 97.5], axis=0).T.reshape(2, 2).T
        ends = table.loc[nth, ["ci_low", "consistency_low", "ci_high", "consistency_high"]]
        assert ends.tolist() == pytest.approx([*low, *high], abs=1e-12)
    low, high = np.percentile(np.mean(every, axis=0), [2.5, 97.5], axis=0)
    mean = table.set_index("condition").loc[MEAN]
    assert mean[["ci_low", "consistency_low"]].tolist() == pytest.approx(low, abs=1e-12)
    assert mean[["ci_high", "consistency_high"]].tolist() == pytest.approx(high, abs=1e-12)
    assert mean["images"] == 4 * 160


def test_one_who_is_always_right_has_an_interval_of_accuracy_and_no_kappa_with_another() -> None:
    right = np.ones(30, bool)
    row = compare_with_people(right, np.ones((2, 30), bool), 50, 0).columns()
    wilson = binomtest(30, 30).proportion_ci(method="wilson")
    assert [row[f"ci_{end}"] for end in ("low", "high")] == pytest.approx([wilson.low, 1])
    assert np.isnan([row["consistency"], row["consistency_low"], row["people_consistency"]]).all()
    single = compare_with_people(right[:1], np.ones((2, 1), bool), 50, 0).columns()
    assert np.isnan([single["ci_low"], single["ci_high"]]).all()


@pytest.fixture(scope="module")
def contrast(tmp_path_factory: pytest.TempPathFactory) -> Split:
    folder = tmp_path_factory.mktemp("contrast")
    return built_set(
        folder / "split", "contrast", write_files(folder / "set", files_of("contrast"))
    )


def test_a_network_whose_decisions_are_known(contrast: Split, tmp_path: Path) -> None:
    """It is wrong about each second image of the first condition, each third of the next, ..."""
    rows = [*range(len(contrast))]
    batches = contrast.batches(rows, 320, [0.0] * 3, [1.0] * 3)
    said = predict(NamesRed(), batches, np.array(contrast.labels), None, contrast.outputs)
    conditions = np.arange(8).repeat(160)
    assert contrast.column("condition").tolist() == conditions.tolist()
    pairs = zip(contrast.labels.tolist(), conditions.tolist(), rows, strict=True)
    assert said["prediction"].tolist() == [decision_on(*each) for each in pairs]
    table = measure_beside_people(OnPredictions("net", said.assign(image=rows), contrast), 20, 0)
    wrong = [sum(n % (nth + 2) == 0 for n in rows[160 * nth :][:160]) for nth in range(8)]
    assert wrong[:3] == [80, 53, 40]
    assert table["accuracy"][:8].tolist() == pytest.approx([1 - each / 160 for each in wrong])
    # The mean is that of 50, 30, 15, 10 and 5 %.
    assert table["counted"].tolist() == [False, *[True] * 5, False, False, True]
    assert table["accuracy"][8] == pytest.approx(1 - sum(wrong[1:6]) / 800)
    find_table("beside_people").write(table, tmp_path / "table")


def test_some_of_the_images_are_compared_with_the_same_of_people(contrast: Split) -> None:
    rows = np.random.default_rng(0).permutation(1280)[:500]
    labels = contrast.labels[rows]
    said = pd.DataFrame({"image": rows, "label": labels, "prediction": labels})
    table = measure_beside_people(OnPredictions("net", said, contrast), 20, 0)
    assert table["images"][:8].sum() == 500
    shown, people = read_shown_images("contrast"), read_people_right("contrast")
    of = rows[(shown["condition"][rows] == "c10").to_numpy()]
    row = table.set_index("condition").loc["c10"]
    assert row["people_accuracy"] == pytest.approx(people[:, of].mean())
    assert (row["accuracy"], row["consistency"]) == (1, 0)


def test_images_that_people_were_not_shown_are_refused(tmp_path: Path) -> None:
    images = shapes(tmp_path / "split", 4)
    said = pd.DataFrame({"image": [0], "label": [0], "prediction": [0]})
    assert refusal(measure_beside_people, OnPredictions("net", said, images), 20, 0) == (
        "data.mine: no decisions of people are known for these images: use the source "
        "`model_vs_human`."
    )


NETWORKS = {"resnet": "ResNet-50", "vit": "ViT-B"}


def test_a_column_of_each_set_shows_the_table() -> None:
    sets = ("high-pass", "sketch")
    members = [Member(f"{f}, {name}", NETWORKS[f], f) for name in sets for f in NETWORKS]
    tables = [table_at_random(m.model.split(", ")[1], m.model, 1, n) for n, m in enumerate(members)]
    table = pd.concat(tables).sample(frac=1, random_state=0)
    figure = drawn_from("beside_people", {"beside_people": table}, members)
    accuracy, of_sketches, consistency, _ = figure.axes
    assert [axes.get_title() for axes in figure.axes] == [*sets, "", ""]
    ticks = [text.get_text() for text in consistency.get_xticklabels()]
    assert ticks == ["\N{INFINITY}", "3", "1.5", "1", "0.7", "0.55", "0.45", "0.4", "mean"]
    assert [text.get_text() for text in of_sketches.get_xticklabels()] == ["all"]
    for axes, column in ((accuracy, "accuracy"), (consistency, "consistency")):
        lines = {line.get_color(): line for line in axes.lines if len(line.get_xdata()) == 8}
        shown = [*lines.values()]
        expected = [tables[0][f"people_{column}"], tables[0][column], tables[1][column]]
        assert len(shown) == 3
        for line, values in zip(shown, expected, strict=True):
            assert line.get_ydata().tolist() == values[:8].tolist()
        ends = [each.get_segments() for each in axes.collections if hasattr(each, "get_segments")]
        interval = "ci" if column == "accuracy" else "consistency"
        found = np.array(ends[1])[:, :, 1]
        np.testing.assert_allclose(found, tables[0][[f"{interval}_low", f"{interval}_high"]])
        people = tables[0][[f"people_{column}_{end}" for end in ("lowest", "highest")]]
        np.testing.assert_allclose(np.array(ends[0])[:, :, 1], people)
    assert legend_labels(figure) == [
        *(*NETWORKS.values(), "people", "from person to person", "not in the mean", "chance"),
        "95 % interval",
    ]
