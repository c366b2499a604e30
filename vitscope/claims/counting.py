"""Count claims on the rows of models, and over the training runs of one recipe."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.chance import LEAST_TRAININGS, false_discovery_rates, mean_chance
from vitscope.claims.claim import Claim, Evidence, Models, Subject, Traits
from vitscope.claims.intervals import decide_by_interval, mean_interval
from vitscope.claims.points import Points, PublishedCurve, at_snapshots
from vitscope.claims.statistics import Found
from vitscope.claims.tables import COUNTED
from vitscope.claims.verdicts import say_verdict, verdict_to_show
from vitscope.files.arrays import Array
from vitscope.files.tables import Table
from vitscope.networks.finding.cut_points import CUT_POINT, NORM

# The tables that claims are counted on, by name; "blocks" is always one of them.
Tables = Mapping[str, pd.DataFrame]


def count_claims(
    figure: str,
    evidence: Evidence,
    tables: Tables,
    models: Sequence[str],
    published: Mapping[str, PublishedCurve],
    traits_of: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Count the claims of one figure: a row for each claim and model, or pair of models.

    Each of several snapshots has its own rows. A claim about one model is left out if neither its
    measured nor its published points have anything to count.
    """
    traits = {
        model: Traits({*_rows_of_model(tables["blocks"], model)["kind"]}, traits_of.get(model, {}))
        for model in models
    }
    order = [*traits]
    found = [
        (subject, claim)
        for claim in evidence.claims
        for subject in claim.about(traits)
        if _of_same_images(traits, subject)
    ]
    # Sort by model; the claims of a model keep their order.
    subjects = sorted(found, key=lambda each: [order.index(model) for model in each[0]])
    table = tables[evidence.table]
    at_points = {*CUT_POINT} <= {*table}
    sides = {model: _side_of_norms(tables["blocks"], model) for model in models if at_points}
    moments: dict[str | None, Tables] = {None: tables}
    if "snapshot" in table:
        moments = {each: at_snapshots(tables, [each]) for each in table["snapshot"].unique()}
    rows = [
        {"figure": figure, "snapshot": snapshot, **row, "statement": _say_statement(row, sides)}
        for snapshot, shown in moments.items()
        for row in _count_each_claim(evidence, shown, subjects, published)
    ]
    return pd.DataFrame(rows, columns=list(COUNTED))


def _of_same_images(traits: Models, subject: Subject) -> bool:
    """Tell whether networks see the same images: errors on others say nothing of the two."""
    one, *others = [traits[model].settings.get("images") for model in subject]
    return all(each == one for each in others)


def _side_of_norms(blocks: pd.DataFrame, model: str) -> str | None:
    """Return on which side of normalization a model's sums are read; None if it has no sums."""
    found = _rows_of_model(blocks, model).get(NORM, pd.Series()).dropna().unique()
    return " and ".join(sorted(found)) or None


def _say_statement(row: Mapping[str, Any], sides: Mapping[str, str | None]) -> str:
    """Return a claim's statement; say on which side of normalization models are read, if known."""
    models = (row[key] for key in ("model", "versus") if row.get(key))
    said = [f"{model} is read {side} its norms" for model in models if (side := sides.get(model))]
    return f"{row['statement']} ({', '.join(said)})" if said else str(row["statement"])


def join_rows_of_figures(table: Table, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join the rows of all figures; return an empty table if there are none."""
    filled = [frame for frame in frames if not frame.empty]
    return pd.concat(filled or [pd.DataFrame(columns=[*table.columns])], ignore_index=True)


def _rows_of_model(table: pd.DataFrame, model: str) -> pd.DataFrame:
    return table[table["model"] == model]


def measured_points(evidence: Evidence, tables: Tables, model: str) -> pd.DataFrame:
    rows, blocks = (_rows_of_model(tables[name], model) for name in (evidence.table, "blocks"))
    return evidence.measured(rows, blocks)


def _count_each_claim(
    evidence: Evidence,
    tables: Tables,
    subjects: Sequence[tuple[Subject, Claim]],
    published: Mapping[str, PublishedCurve],
) -> Iterator[dict[str, Any]]:
    shown = dict.fromkeys(model for subject, _ in subjects for model in subject)
    ours = {model: Points(measured_points(evidence, tables, model)) for model in shown}
    theirs = {model: Points(evidence.published(curve.points)) for model, curve in published.items()}
    for subject, claim in subjects:
        measured = claim.statistic.find(*(ours[model] for model in subject))
        known = all(model in theirs for model in subject)
        found = claim.statistic.find(*(theirs[model] for model in subject)) if known else None
        # A study asks for comparisons by name, so each gets a row, even with nothing to compare.
        if measured or found or len(subject) > 1:
            series = ", ".join(published[model].series for model in subject) if found else None
            yield {"published_series": series, **_count_claim(claim, subject, measured, found)}


def _count_claim(
    claim: Claim, subject: Subject, measured: Found | None, published: Found | None
) -> dict[str, Any]:
    above = claim.statistic.above
    return {
        "model": subject[0],
        "versus": subject[1] if len(subject) > 1 else None,
        "claim": claim.name,
        "statement": f"{claim.statement}{measured.beside if measured else ''}",
        "source": claim.source,
        "measure": claim.statistic.measure,
        "percent": claim.statistic.percent,
        "holds_above": above,
        **_counts_of_side("published", published, above),
        **_counts_of_side("measured", measured, above),
        "certain": measured and measured.certain,
        "margin": measured and measured.margin,
        "p": measured and measured.p_value_against(above),
        "batches": measured and measured.units,
        "fewest_batches": measured and measured.units and measured.fewest,
    }


def _counts_of_side(side: str, found: Found | None, above: float) -> dict[str, Any]:
    low, high = (found.interval if found else None) or (None, None)
    verdict = found.verdict(above) if found else None
    # A value read off a published curve is shown but not judged.
    judged = side == "measured" or low is not None
    return {
        f"{side}_count": found and found.count,
        f"{side}_total": found and found.total,
        f"{side}_value": found and found.value,
        f"{side}_low": low,
        f"{side}_high": high,
        f"{side}_verdict": verdict if judged else None,
    }


# These columns identify a row in any figure: a claim on one network or two, at a snapshot.
DISTINCT = ["model", "versus", "snapshot", "claim"]
# These identify what is said of a recipe, or of two.
RECIPE = ["recipe", "snapshot", "claim"]


@dataclass(frozen=True)
class Training:
    """The recipe and the seed that a network was trained with."""

    recipe: str
    seed: Any


Trainings = Mapping[str, Training]


def trainings(repeats: Sequence[Sequence[str]], seeds: Mapping[str, Any]) -> dict[str, Training]:
    """Return each model's training run; a recipe is named after its first model in `repeats`."""
    first = {model: group[0] for group in repeats for model in group}
    return {model: Training(first.get(model, model), seed) for model, seed in seeds.items()}


def count_by_recipe(claims: pd.DataFrame, of: Trainings) -> pd.DataFrame:
    """Add columns to counted claims: results over a recipe's runs, verdicts, discovery rates.

    If a recipe has at least three training runs, Student's interval over these runs decides: the
    interval of the value or, where cases are counted, of `margin`, by how much cases are in favour
    on average. Where cases are counted, the count of each run has to say the same. Two recipes are
    compared by runs with the same seed, if a figure has such runs, as these see the same images in
    the same order.
    """
    if claims.empty:
        return claims
    claims = _drop_pairs_of_two_seeds(claims, of)
    once = distinct_claims(claims)
    by_recipe: dict[Any, list[dict[Hashable, Any]]] = {}
    for row in once.to_dict("records"):
        key = _claim_on_recipes(row, of)
        if key and pd.notna(row["measured_value"]):
            by_recipe.setdefault(key, []).append(row)
    found = {key: _columns_of_recipe(key, rows) for key, rows in by_recipe.items()}
    recipes = [
        found.get(_claim_on_recipes(row, of), _ONE_TRAINING) for row in claims.to_dict("records")
    ]
    said = pd.DataFrame(recipes, columns=list(_ONE_TRAINING), index=claims.index)
    counted = pd.concat([claims, said], axis=1)
    counted = counted.assign(q=_false_discovery_rates_of_rows(counted))
    rows = counted.to_dict("records")
    counted["holds"] = pd.Series(map(verdict_to_show, rows), counted.index, dtype=object)
    rows = counted.to_dict("records")
    return counted.assign(verdict=pd.Series(map(say_verdict, rows), counted.index, dtype=object))


def _false_discovery_rates_of_rows(claims: pd.DataFrame) -> pd.Series:
    """Return the rate of each row: recipes among recipes, single networks among networks."""
    rates = pd.Series(np.nan, claims.index)
    of_recipes = claims["recipe"].notna()
    for chosen, column, key in ((of_recipes, "recipe_p", RECIPE), (~of_recipes, "p", DISTINCT)):
        rows = claims[chosen]
        once = rows.drop_duplicates(key)
        found = false_discovery_rates(once[column].to_numpy(float))
        first = rows.groupby(key, dropna=False)["claim"].transform(lambda same: same.index[0])
        rates[chosen] = first.map(dict(zip(once.index, found, strict=True)))
    return rates


def _drop_pairs_of_two_seeds(claims: pd.DataFrame, of: Trainings) -> pd.DataFrame:
    """Drop pairs with different seeds if the figure has the same recipes with equal seeds."""
    at = {(training.recipe, training.seed): model for model, training in of.items()}
    keys = claims[["figure", "snapshot", "claim", "model", "versus"]].fillna("")
    rows = [*keys.itertuples(index=False, name=None)]
    there = {*rows}

    def is_pair_kept(*row: str) -> bool:
        *rest, model, versus = row
        if model not in of or versus not in of or of[model].seed == of[versus].seed:
            return True
        ours = at.get((of[model].recipe, of[versus].seed))
        theirs = at.get((of[versus].recipe, of[model].seed))
        return there.isdisjoint({(*rest, ours, versus), (*rest, model, theirs)})

    return claims[[is_pair_kept(*row) for row in rows]].reset_index(drop=True)


def distinct_claims(claims: pd.DataFrame) -> pd.DataFrame:
    """Drop repeated rows: keep one row for a claim on a model, or on a pair, at a snapshot."""
    return claims.drop_duplicates(DISTINCT)


def once_per_recipe(claims: pd.DataFrame) -> pd.DataFrame:
    """Keep each claim once, for a recipe in its first training, as all have one verdict."""
    once = distinct_claims(claims)
    return once[once["recipe"].isna() | ~once.duplicated(RECIPE)]


# The columns about recipes, in a row about a single training run.
_ONE_TRAINING: dict[str, Any] = {
    "recipe": None,
    "trainings": 1,
    "values": None,
    "recipe_low": None,
    "recipe_high": None,
    "recipe_verdict": "one training",
    "recipe_p": None,
}


def _claim_on_recipes(row: Mapping[Hashable, Any], of: Trainings) -> tuple[Any, ...] | None:
    """Return a row's claim, snapshot and recipes; None if a model is unknown or seeds differ."""
    models = [row[name] for name in ("model", "versus") if pd.notna(row[name])]
    known = [of[model] for model in models if model in of]
    if len(known) < len(models) or len({training.seed for training in known}) != 1:
        return None
    snapshot = None if pd.isna(row["snapshot"]) else row["snapshot"]
    return (row["claim"], snapshot, *(training.recipe for training in known))


def _columns_of_recipe(
    key: tuple[Any, ...], rows: Sequence[Mapping[Hashable, Any]]
) -> dict[str, Any]:
    """Return the columns of a recipe: values of its training runs, their interval, the verdict."""
    if len(rows) < LEAST_TRAININGS:
        return _ONE_TRAINING
    _, _, *recipes = key
    counts = [row["measured_count"] for row in rows]
    values: Array = np.array([row["measured_value"] for row in rows], float)
    margins: Array = np.array([row["margin"] for row in rows], float)
    by_margin = bool(np.isfinite(margins).all())
    above = 0.0 if by_margin else rows[0]["holds_above"]
    compared = margins if by_margin else values
    interval = mean_interval(compared)
    verdict = decide_by_interval(float(compared.mean()), above, interval)
    # Margins may say what the counts of no network say: few large changes outweigh many small ones.
    in_favour = {bool(value > rows[0]["holds_above"]) for value in values}
    return {
        "recipe": " / ".join(recipes),
        "trainings": len(rows),
        "values": [float(each) for each in (counts if pd.notna(counts).all() else values)],
        "recipe_low": interval and interval[0],
        "recipe_high": interval and interval[1],
        "recipe_verdict": verdict if in_favour == {verdict == "yes"} else "open",
        "recipe_p": mean_chance(compared, above) if interval else None,
    }
