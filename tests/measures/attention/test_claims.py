from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, count_alone, favoured, published, verdicts

DEPTHS = [0.1, 0.3, 0.5, 0.7, 0.9]
# Of each attention the distances of two heads, in pixels.
DISTANCES = [(2, 9), (3, 7), (5, 6.2), (7, 8), (8, 8.4)]
MUTUAL = [0.5, 0.4, 0.3, 0.2, 0.05]


def numbers(
    distances: Sequence[Sequence[float]], mutual: Sequence[float] = MUTUAL, model: str = "vit"
) -> pd.DataFrame:
    """Return a table of attentions, the first two in four windows, of distances by head."""
    rows = []
    for number, of_heads in enumerate(distances):
        fixed = {"model": model, "attention": number, "depth": DEPTHS[number]}
        fixed |= {"heads": len(of_heads), "nmi": mutual[number], "windows": 4 if number < 2 else 1}
        fixed |= {"distance_uniform": 10.0, "distance_anywhere": 8.0 if number < 2 else 10.0}
        rows += [
            {**fixed, "head": head, "distance_renormalized": distance, "distance": distance}
            for head, distance in [*enumerate(of_heads), (None, float(np.mean(of_heads)))]
        ]
    return pd.DataFrame(rows).astype({"head": "Int32"})


TABLE = numbers(DISTANCES)
# Means over heads are 5.5, 5, 5.6, 7.5 and 8.2 of the one, 7.5, 5, 5.5, 7.25 and 8.15 of the other.
OTHER = numbers([(6, 9), (3, 7), (5, 6), (7, 7.5), (8, 8.3)], model="alternet")
BOTH = {"attention": pd.concat([TABLE, OTHER]), "blocks": blocks("vit", "alternet")}
EXAMPLES = {"attention_distance": BOTH, "attention_nmi": BOTH}
WAYS = ("more_images", "distillation", "self_supervision")
PRETRAINED = {"vit": {f"pretraining.{way}": ["alternet", "another"] for way in WAYS}}
TRAITS = {"attention_distance": PRETRAINED}


def counted(table: pd.DataFrame, kind: str = "attention_distance") -> pd.DataFrame:
    return count_alone(kind, table).droplevel("model")


def values(table: pd.DataFrame, kind: str = "attention_distance") -> dict[str, float]:
    return dict(counted(table, kind)["measured_value"])


def test_by_hand() -> None:
    claims = counted(TABLE)
    found = dict(claims["measured_value"])
    # Spreads over 10: 0.7 and 0.4 in the first third, 0.1 and 0.04 in the last.
    assert found["early_heads_look_near_and_far"] == pytest.approx(0.55 - 0.07)
    # The mean of all heads is 6.36: all four of the last third are above.
    assert found["late_heads_look_far"] == 1
    # Means 5.5, 5, 5.6, 7.5, 8.2: the first two are swapped, 1 - 6 * 2 / (5 * 24).
    assert found["distance_grows"] == pytest.approx(0.9)
    # Of 2, 9, 3 and 7 three are below 8.
    assert found["windows_bound_distance"] == 0.75
    assert claims["holds"].tolist() == ["yes, without an interval"] * 4
    shares = verdicts(counted(TABLE).reset_index().assign(model="vit", versus=None))
    assert shares["late_heads_look_far", "vit"] == (4, 4, True)
    assert shares["windows_bound_distance", "vit"] == (3, 4, True)


def test_the_other_way_round() -> None:
    found = counted(numbers(DISTANCES[::-1]))
    assert found["measured_value"]["early_heads_look_near_and_far"] == pytest.approx(0.07 - 0.55)
    # Of 2, 9, 3 and 7 two are above 6.36; 8, 8.4, 7 and 8: one is below 8.
    assert found["measured_value"]["late_heads_look_far"] == 0.5
    assert found["measured_value"]["windows_bound_distance"] == 0.25
    assert favoured(found) == [False] * 4


def test_collapse_by_hand() -> None:
    found = counted(TABLE, "attention_nmi")
    # The mean of all is 0.29; of the last two, one is above half of it.
    (row,) = found.to_dict("records")
    assert (row["measured_count"], row["measured_total"]) == (1, 2)
    assert row["holds"] == "no, without an interval"
    none = counted(numbers(DISTANCES, [0.3, 0.2, 0.3, 0.2, 0.3]), "attention_nmi")
    assert none["measured_value"].tolist() == [1]
    assert favoured(none) == [True]


def test_models_that_were_pretrained_in_other_ways() -> None:
    claims = count("attention_distance", BOTH, ["vit", "alternet"], traits_of=PRETRAINED)
    assert verdicts(claims[claims["versus"].notna()]) == {
        ("more_images_look_farther", "vit", "alternet"): (3, 5, True),
        ("distillation_looks_nearer", "vit", "alternet"): (1, 5, False),
    }


def test_attention_of_the_class_alone_is_left_out() -> None:
    undefined = (np.nan, np.nan)
    table = numbers([*DISTANCES[:4], undefined], [*MUTUAL[:4], np.nan])
    found = values(table)
    assert found["early_heads_look_near_and_far"] == pytest.approx(0.55 - 0.1)
    assert found["distance_grows"] == pytest.approx(0.8)
    # The mean of all is 0.35.
    assert values(table, "attention_nmi") == {"late_attention_does_not_collapse": 1}


def test_what_tells_nothing() -> None:
    # One head spreads nowhere; without windows none are bounded; two attentions have no ranks.
    alone = numbers([distances[:1] for distances in DISTANCES])
    assert "early_heads_look_near_and_far" not in values(alone)
    assert "windows_bound_distance" not in values(TABLE.assign(windows=1))
    assert "distance_grows" not in values(numbers(DISTANCES[:2]))
    assert "distance_grows" not in values(numbers([(5, 5)] * 5))
    # Without late attention.
    early = values(numbers(DISTANCES[:2]))
    assert [*early] == ["windows_bound_distance"]
    assert values(numbers(DISTANCES[:2]), "attention_nmi") == {}


def test_published_points_are_counted_alike() -> None:
    theirs = {"vit": "MoCo v3 ViT-B/16"}
    found = {}
    for kind in ("attention_distance", "attention_nmi"):
        points = published(kind, "clmim_moco.csv", theirs)
        found |= count_alone(kind, TABLE, points).droplevel("model").to_dict("index")
    # Of 12 distances the squares of what ranks differ by add up to 164.
    grows = found["distance_grows"]["published_value"]
    assert grows == pytest.approx(1 - 6 * 164 / (12 * 143))
    # The mean of all is 0.145: of the last four blocks two are above half of it.
    kept = found["late_attention_does_not_collapse"]
    assert (kept["published_count"], kept["published_total"]) == (2, 4)
    # Of heads and windows nothing was published.
    for claim in ("early_heads_look_near_and_far", "late_heads_look_far", "windows_bound_distance"):
        assert pd.isna(found[claim]["published_value"])


LOW_PASS = "attention_low_pass"


def passing_heads(let_through: list[float], resampled: list[Any] | None = None) -> pd.DataFrame:
    """Return a table of heads of one attention, and of their mean."""
    head = pd.array([*range(len(let_through)), None], dtype="Int32")
    columns: dict[str, Any] = {"let_through": [*let_through, 9.0]}
    if resampled:
        columns["let_through_resampled"] = [*resampled, None]
    return pd.DataFrame({"model": "vit", "attention": 0, "head": head, **columns})


PASSING = {LOW_PASS: {LOW_PASS: passing_heads([0.5, 1.5, 0.9]), "blocks": blocks("vit")}}


def count_passing(table: pd.DataFrame) -> dict[str, dict[Any, Any]]:
    return count_alone(LOW_PASS, table).droplevel("model").to_dict("index")


def test_low_pass_by_hand() -> None:
    filters = count_passing(PASSING[LOW_PASS][LOW_PASS])["heads_are_low_pass_filters"]
    # Of the heads alone: the mean is none of them.
    assert (filters["measured_count"], filters["measured_total"]) == (2, 3)
    assert filters["holds"] == "yes, without an interval"
    # Where values cannot be read, nothing is counted.
    assert count_passing(passing_heads([np.nan])) == {}


def test_heads_that_resamples_turn_around_are_uncertain() -> None:
    resampled = [np.linspace(0.4, 0.6, 40), np.linspace(1.4, 1.6, 40), np.linspace(0.8, 1.1, 40)]
    row = count_passing(passing_heads([0.5, 1.5, 0.9], resampled))["heads_are_low_pass_filters"]
    assert (row["measured_count"], row["measured_total"], row["certain"]) == (2, 3, 2)
    # Two of three in most resamples, else one.
    assert (row["measured_low"], row["measured_high"]) == (1 / 3, 2 / 3)
    assert row["holds"] == "open"
    # The mean logarithm of what is not let through.
    margin = -np.log([0.5, 1.5, 0.9]).mean()
    assert row["margin"] == pytest.approx(margin, rel=1e-12)


def looking_heads(model: str, shares: Sequence[float | None]) -> pd.DataFrame:
    """Return the maps of heads of an image, and one of a query; the subject is a quarter of it."""
    fixed = {"model": model, "image": 0, "subject": 0.25}
    rows = [
        {**fixed, "head": number, "shows": "heads", "on_subject": each}
        for number, each in enumerate(shares)
    ]
    return pd.DataFrame([*rows, {**fixed, "head": 0, "shows": "queries", "on_subject": 1.0}])


def rolled_out(model: str, shares: Sequence[float | None]) -> pd.DataFrame:
    """Return the rollouts of images, a quarter of which is their subject."""
    numbered = {"model": model, "image": range(len(shares)), "on_subject": shares}
    return pd.DataFrame(numbered).assign(subject=0.25)


LOOKING = looking_heads("vit", [0.2, 0.3, 0.7, 0.8])
ROLLED_OUT = rolled_out("vit", [0.2, 0.3, 0.7, None])
EXAMPLES |= PASSING | {
    "attention_heads": {"attention_maps": LOOKING, "blocks": blocks("vit")},
    "attention_rollout": {"attention_rollout": ROLLED_OUT, "blocks": blocks("vit")},
}


@pytest.mark.parametrize(
    ("kind", "made", "by", "fourth", "counts", "difference"),
    [
        # The fourth image has no mask.
        ("attention_rollout", rolled_out, "augmentation", (None, None), (2, 3), 0.4 - 0.2),
        ("attention_heads", looking_heads, "self_supervision", (0.8, 0.4), (3, 4), 0.5 - 0.25),
    ],
)
def test_what_lies_on_the_subject(
    kind: str,
    made: Callable[..., pd.DataFrame],
    by: str,
    fourth: tuple[float | None, float | None],
    counts: tuple[int, int],
    difference: float,
) -> None:
    table = pd.concat(
        [made("vit", [0.2, 0.3, 0.7, fourth[0]]), made("swin", [0.1, 0.2, 0.3, fourth[1]])]
    )
    (name, *_), blocks_of = EXAMPLES[kind], blocks("vit")
    traits, models = {"vit": {f"pretraining.{by}": ["swin"]}}, ["vit", "swin"]
    found = count(kind, {name: table, "blocks": blocks_of}, models, traits_of=traits)
    alone, against = found[found["model"] == "vit"].to_dict("records")
    assert (alone["measured_count"], alone["measured_total"]) == counts
    assert against["measured_value"] == pytest.approx(difference)
    assert against["holds"] == "yes, without an interval"
    # Without a mask there is nothing to count.
    unknown = {name: table.assign(on_subject=np.nan), "blocks": blocks_of}
    found = count(kind, unknown, models, traits_of=traits)
    assert found["measured_value"].isna().tolist() == [True]
    assert count(kind, unknown, models).empty
