"""The page about claims: what is claimed, what was measured, and whether each claim holds."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from vitscope.claims.claim import Evidence
from vitscope.claims.counting import once_per_recipe
from vitscope.claims.intervals import CONFIDENCE
from vitscope.files.pages import Section

_RULE = (
    "What is claimed, what published points say of it, and what was measured here, all by the same "
    "rule. Below the name of each figure stands what it counts. A verdict on this network asks "
    "whether other images could change it: in parentheses stands the 95 % interval of a value over "
    "images, or how many of what is counted have a certain sign. A verdict on the recipe asks "
    "whether other trainings would: it takes three or more, with other seeds, and is a bare yes or "
    "no; where cases are counted, the count of each training has to say the same. It is open where "
    "the interval contains the value above which the claim holds. All, most or a number says in "
    "how many cases. Without an interval, nobody knows what chance could say, and the verdict says "
    "so. A dash stands where nothing can be counted: no points are published, or there is no "
    "value. What is published is judged where its number of images is known; what is read off a "
    "curve is shown alone."
)
_NO_CLAIMS = "None of this study's figures is about a claim of the paper that is counted."
_AGREEMENT_RULE = (
    "Where the study measures the checkpoints that were published, its curves are interpolated "
    "where the published points lie. The signs are the share of changes, from point to point or, "
    "of curves over frequency, from cut point to cut point, that go the way of the published ones; "
    "the changes are their rank correlation (Spearman), in slope. The error is the root mean "
    "square difference, of ratios in decades, with how many standard deviations over resamples of "
    "the images it is. In parentheses stands what nobody needs the checkpoint for: the best that a "
    "straight line could do, whose changes have no order, and the best published curve of another "
    "network of the figure. A score says something of the checkpoint if it is better than both."
)
_SUMMARY_RULE = (
    "How many of the claims below have each verdict. Each claim of a model, or of two, counts "
    "once, however many figures show it, and trainings of one recipe together, at their first."
)
_DOUBTS = (
    "What makes the accuracy of these models doubtful, and all that is compared with it. Each is "
    "told with confidence: of networks that are of use it would be told of one in a hundred."
)
# Maps a verdict to words for what the claim does; verdicts on recipes come first.
VERDICTS = {
    "yes": "hold",
    "no": "fail",
    "open": "open",
    "yes, in this network": "hold in this network",
    "no, in this network": "fail in this network",
    "yes, without an interval": "hold, without an interval",
    "no, without an interval": "fail, without an interval",
}
_PAIRS = (
    ("yes", "no", "of a recipe"),
    ("yes, in this network", "no, in this network", "in one network"),
    ("yes, without an interval", "no, without an interval", "without an interval"),
)
FOUND = ("model", "claim", "published", "measured", "holds")
# The share of intervals that miss.
MISSES = 1 - CONFIDENCE


def list_warnings(warnings: Sequence[str]) -> list[Section]:
    rows = [(warning,) for warning in warnings]
    return [Section("Warnings", _DOUBTS, ("warning",), rows)] if rows else []


def introduction_to_claims(claims: pd.DataFrame) -> str:
    """Return the text above the claims, or a sentence that there are no claims."""
    return _NO_CLAIMS if claims.empty else f"{_RULE} {chance_in_words(claims)}"


def chance_in_words(claims: pd.DataFrame) -> str:
    """Say in a sentence how many verdicts chance may have decided."""
    once = once_per_recipe(claims)
    of_recipe = once["recipe"].notna()
    about = {"on one network": once["p"][~of_recipe], "on recipes": once["recipe_p"][of_recipe]}
    counts = {where: int(chances.notna().sum()) for where, chances in about.items()}
    said = [f"{MISSES * n:.0f} of {n} tested rows {where}" for where, n in counts.items() if n]
    return f"Chance may have decided {' and '.join(said) or '0 of 0 tested rows'}."


def value_as_text(row: Mapping[Hashable, Any], value: float) -> str:
    if not row["percent"]:
        return f"{value:+.3f}"
    counted = pd.notna(row["measured_total"]) or pd.notna(row["published_total"])
    return f"{100 * value:.0f} %" if counted else f"{100 * value:+.1f} %"


def finding_as_text(row: Mapping[Hashable, Any], side: str) -> str:
    """Return the count and its total, or the value and its interval; a dash if nothing is found."""
    if pd.isna(row[f"{side}_value"]):
        return "–"
    if pd.notna(row[f"{side}_total"]):
        return f"{row[f'{side}_count']:.0f} of {row[f'{side}_total']:.0f}"
    text = value_as_text(row, row[f"{side}_value"])
    if pd.notna(row[f"{side}_low"]):
        ends = (value_as_text(row, row[f"{side}_{end}"]) for end in ("low", "high"))
        text += f" ({' to '.join(ends)})"
    return text


def _report_measured(row: Mapping[Hashable, Any]) -> str:
    text = finding_as_text(row, "measured")
    if pd.notna(row["certain"]):
        uncertain = row["measured_total"] - row["certain"]
        text += f" ({row['certain']:.0f} certain, {uncertain:.0f} open)"
    if row["trainings"] > 1:
        counted = pd.notna(row["measured_total"])
        each = (f"{value:.0f}" if counted else value_as_text(row, value) for value in row["values"])
        text += f"; of {row['trainings']:.0f} trainings: {', '.join(each)}"
    return text


def _name_models(row: Mapping[Hashable, Any], labels: Mapping[str, str]) -> str:
    models = labels[row["model"]]
    if pd.notna(row["versus"]):
        models += f" against {labels[row['versus']]}"
    return models if pd.isna(row["snapshot"]) else f"{models}, snapshot {row['snapshot']}"


def findings_as_table(claims: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Return a table of claims in words, without the column `published` if it would be empty."""
    rows = [
        {
            "model": _name_models(row, labels),
            "claim": row["statement"],
            "published": finding_as_text(row, "published"),
            "measured": _report_measured(row),
            "holds": "–" if pd.isna(row["verdict"]) else str(row["verdict"]),
        }
        for row in claims.to_dict("records")
    ]
    known = claims["published_value"].notna().any()
    return pd.DataFrame(rows, columns=[name for name in FOUND if known or name != "published"])


def summary_of_verdicts(claims: pd.DataFrame, labels: Mapping[str, str]) -> list[Section]:
    """Return a section that counts verdicts by model and in total; no section without claims."""
    if claims.empty:
        return []
    once = once_per_recipe(claims)
    shown = [does for does, count in count_verdicts(once["holds"]).items() if count]
    groups = [(labels[str(model)], each) for model, each in once.groupby("model", sort=False)]
    rows = [
        (name, *(str(count_verdicts(each["holds"])[does]) for does in shown))
        for name, each in [*groups, ("all", once)]
    ]
    return [Section("Summary", _SUMMARY_RULE, ("model", *shown), rows)]


def count_in_words(claims: pd.DataFrame) -> str:
    """Say in a sentence how many claims hold, fail and are open, or that there are no claims."""
    if claims.empty:
        return _NO_CLAIMS
    found = once_per_recipe(claims)["holds"].value_counts()
    said = [
        f"{found.get(yes, 0)} hold and {found.get(no, 0)} fail {where}"
        for yes, no, where in _PAIRS
        if found.get(yes, 0) + found.get(no, 0)
    ]
    if found.get("open", 0):
        said.append(f"{found['open']} are open")
    return f"{found.sum()} claims: {', '.join(said)}. {chance_in_words(claims)}"


def count_verdicts(verdicts: pd.Series) -> dict[str, int]:
    """Count how many claims hold, how many fail and so on."""
    return {does: int((verdicts == verdict).sum()) for verdict, does in VERDICTS.items()}


def _section_of_agreement(agreement: pd.DataFrame, labels: Mapping[str, str]) -> Section:
    header = ("figure", "model", "published series", "signs", "changes", "error")
    rows = [
        (
            row["figure"],
            labels[row["model"]],
            f"{row['published_series']}, {row['compared_points']} of {row['published_points']} "
            "points",
            _report_score(row, "sign_share", ".0%"),
            _report_score(row, "change_correlation", "+.2f"),
            _report_score(row, "error", ".3f", _report_unit(row)),
        )
        for row in agreement.to_dict("records")
    ]
    return Section("Agreement with the published curves", _AGREEMENT_RULE, header, rows)


def _report_score(row: Mapping[Hashable, Any], score: str, form: str, unit: str = "") -> str:
    """Return a score, and in parentheses the scores of a straight line and of another network."""

    def score_as_text(column: str) -> str:
        known = pd.notna(row.get(column))
        return f"{row[column]:{form}}".replace("%", " %") if known else "–"

    line, other = score_as_text(f"{score}_of_line"), score_as_text(f"{score}_of_other")
    return f"{score_as_text(score)}{unit} (line {line}, other network {other})"


def _report_unit(row: Mapping[Hashable, Any]) -> str:
    """Return what follows an error: its unit and, if known, how many standard deviations it is."""
    decades = " decades" if row["unit"] == "decades" else ""
    if pd.isna(row["error"]) or pd.isna(row["uncertainty"]) or not row["uncertainty"]:
        return decades
    return f"{decades}, {row['error'] / row['uncertainty']:.1f} SD"


def sections_of_claims(
    claims: pd.DataFrame,
    agreement: pd.DataFrame,
    labels: Mapping[str, str],
    evidence: Iterable[Evidence],
) -> list[Section]:
    """Return the sections of the page: a summary, claims by figure with their rules, agreement."""
    rules = {claim.name: claim.rule for each in evidence for claim in each.claims}
    found = []
    for figure, of_figure in claims.groupby("figure", sort=False):
        text = " ".join(dict.fromkeys(of_figure["claim"].map(rules)))
        shown = findings_as_table(of_figure, labels)
        rows = [*shown.itertuples(index=False, name=None)]
        found.append(Section(str(figure), text, [*shown], rows))
    scores = [] if agreement.empty else [_section_of_agreement(agreement, labels)]
    return [*summary_of_verdicts(claims, labels), *found, *scores]
