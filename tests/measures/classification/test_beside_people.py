from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
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


def of_people(name: str) -> pd.DataFrame:
    """The table of the first person in place of a network, by condition."""
    shown = read_shown_images(name)
    conditions = read_shown_conditions(name)["condition"].tolist()
    right = read_people_right(name)

    class Images:
        metadata = {"shown_set": name}

        def column(self, key: str) -> np.ndarray:
            return {
                "index": np.arange(len(shown)),
                "condition": shown["condition"].map(conditions.index).to_numpy(),
            }[key]

    said = {"image": np.arange(len(shown)), "label": 0, "prediction": 1 - right[0]}
    given = OnPredictions("person", pd.DataFrame(said), Images())
    return measure_beside_people(given, 50, 0).set_index("condition")


def test_people_are_as_counted_from_the_raw_files() -> None:
    for (name, condition), (accuracies, kappa) in COUNTED.items():
        row = of_people(name).loc[condition]
        assert row["people"] == len(accuracies)
        assert row["accuracy"] == pytest.approx(accuracies[0], abs=1e-12)
        assert row["people_accuracy"] == pytest.approx(np.mean(accuracies), abs=1e-12)
        assert row["people_accuracy_lowest"] == pytest.approx(min(accuracies), abs=1e-12)
        assert row["people_accuracy_highest"] == pytest.approx(max(accuracies), abs=1e-12)
        assert row["people_consistency"] == pytest.approx(kappa, abs=1e-6)


def test_means_over_conditions_are_as_counted_from_the_raw_files() -> None:
    """With those of the cues, people are right about 0.723 of the images: 0.72 are published."""
    assert sorted(COUNTED_OF_SETS) == sorted(SOURCE["keys"]["set"]["enum"])
    for name, (accuracy, kappa) in COUNTED_OF_SETS.items():
        row = of_people(name).loc[MEAN]
        assert row["people_accuracy"] == pytest.approx(accuracy, abs=1e-6)
        assert row["people_consistency"] == pytest.approx(kappa, abs=1e-6)
        # A person agrees in full with themselves, as one of the people.
        people = row["people"]
        own = row["people_consistency_lowest"], row["people_consistency_highest"]
        found = (row["consistency"] * people - 1) / (people - 1)
        assert own[0] - 1e-9 <= found <= own[1] + 1e-9
    cues = read_people("cue_conflict.csv").mean()
    assert np.mean([cues, *(each for each, _ in COUNTED_OF_SETS.values())]) == pytest.approx(
        0.722815, abs=1e-6
    )
