"""The page that says what the paper claims, what was measured, and whether it holds."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from vitscope.claims.chance import Verdict, share_interval, verdict
from vitscope.claims.claim import Evidence
from vitscope.files.pages import Section

_RULE = (
    "What the paper claims, what its published points say of it, and what was measured here, both "
    "by the same rule. Below the name of each figure stands what it counts. A claim holds where "
    "more than half of what is counted is in favour; or where a difference, given with its sign, "
    "is in the claimed direction. In parentheses stands the 95 % interval of a value, where it has "
    "one: that of a share by Wilson's formula, that of a difference of two models by Newcombe's or "
    "by bootstrap, that of a rank correlation by Fisher's z. A claim whose interval contains one "
    "half, or zero, is undecided, since chance could say either. Where there is no interval, "
    "nobody knows what chance could say, and the verdict says so. A dash stands where nothing can "
    "be counted: no points of the paper are known, or there is no value."
)
_NO_CLAIMS = "None of this study's figures is about a claim of the paper that is counted."
_AGREEMENT_RULE = (
    "Where the study measures the checkpoints that were published, its curves are interpolated "
    "where the published points lie. The rank correlation is Spearman's; the error is the root "
    "mean square difference over the range of the published values."
)


_SUMMARY_RULE = (
    "How many of the claims below hold, fail and are undecided, beside what published points say "
    "of the same claims, where these are known. Each claim of a model, or of two, counts once, "
    "however many figures show it."
)
# Of all verdicts, what claims do that have it.
_VERDICTS: dict[Verdict, str] = {
    "yes": "hold",
    "no": "fail",
    "undecided": "undecided",
    "yes, without an interval": "hold, without an interval",
    "no, without an interval": "fail, without an interval",
}

FOUND = ("model", "claim", "published", "measured", "holds")

_DOUBTS = (
    "What makes the accuracy of these models doubtful, and all that is compared with it. Each is "
    "told with confidence: of networks that are of use it would be told of one in a hundred."
)


def list_warnings(warnings: Sequence[str]) -> list[Section]:
    """Return a section of warnings, or none."""
    rows = [(warning,) for warning in warnings]
    return [Section("Warnings", _DOUBTS, ("warning",), rows)] if rows else []


def introduction(claims: pd.DataFrame) -> str:
    """Return what to say above the claims, or that there are none."""
    return _NO_CLAIMS if claims.empty else _RULE


def _value(row: Mapping[Hashable, Any], column: str) -> str:
    value = row[column]
    return f"{100 * value:.0f} %" if row["measure"].startswith("share") else f"{value:+.3f}"


def _counted(row: Mapping[Hashable, Any], side: str) -> str:
    return f"{row[f'{side}_count']:.0f} of {row[f'{side}_total']:.0f}"


def _finding(row: Mapping[Hashable, Any], side: str) -> str:
    """Return how many of how many, or the value where nothing is counted; a dash without it."""
    if pd.isna(row[f"{side}_value"]):
        return "–"
    known = pd.notna(row[f"{side}_total"])
    return _counted(row, side) if known else _value(row, f"{side}_value")


def _measured(row: Mapping[Hashable, Any]) -> str:
    text = _finding(row, "measured")
    if pd.notna(row["versus_total"]):
        text += f" against {_counted(row, 'versus')}, {_value(row, 'measured_value')}"
    if pd.notna(row["ci_low"]):
        text += f" ({_value(row, 'ci_low')} to {_value(row, 'ci_high')})"
    return text


def _models(row: Mapping[Hashable, Any], labels: Mapping[str, str]) -> str:
    models = labels[row["model"]]
    if pd.notna(row["versus"]):
        models += f" against {labels[row['versus']]}"
    return models if pd.isna(row["snapshot"]) else f"{models}, snapshot {row['snapshot']}"


def findings(claims: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Return the claims in words: whose, what is claimed, published and measured; and if it holds.

    `labels` are what to call the models. Where nothing is published, there is no such column.
    """
    rows = [
        {
            "model": _models(row, labels),
            "claim": row["statement"],
            "published": _finding(row, "published"),
            "measured": _measured(row),
            "holds": "–" if pd.isna(row["holds"]) else str(row["holds"]),
        }
        for row in claims.to_dict("records")
    ]
    known = claims["published_value"].notna().any()
    return pd.DataFrame(rows, columns=[name for name in FOUND if known or name != "published"])


def distinct(claims: pd.DataFrame) -> pd.DataFrame:
    """Return each claim of a model, or of two, at a snapshot once; with its published verdict."""
    once = claims.drop_duplicates(["model", "versus", "snapshot", "claim"])
    return once.assign(published=pd.Series(map(_published, once.to_dict("records")), once.index))


def _published(row: Mapping[Hashable, Any]) -> str | None:
    if pd.isna(row["published_value"]):
        return None
    count, total = row["published_count"], row["published_total"]
    interval = None if pd.isna(total) else share_interval(int(count), int(total))
    return verdict(row["published_value"], row["holds_above"], interval)


def summary(claims: pd.DataFrame, labels: Mapping[str, str]) -> list[Section]:
    """Return a section that counts verdicts, by model and in all; none where nothing is claimed."""
    if claims.empty:
        return []
    once = distinct(claims)
    groups = [(labels[str(model)], each) for model, each in once.groupby("model", sort=False)]
    sides = {"": "holds"} | ({"published: ": "published"} if once["published"].any() else {})
    header = ("model", *(f"{side}{does}" for side in sides for does in _VERDICTS.values()))
    rows = [
        (name, *(str(count) for side in sides.values() for count in tally(each[side]).values()))
        for name, each in [*groups, ("all", once)]
    ]
    return [Section("Summary", _SUMMARY_RULE, header, rows)]


def count_in_words(claims: pd.DataFrame) -> str:
    """Return how many claims hold, fail and are open, in a sentence; or that there are none."""
    if claims.empty:
        return _NO_CLAIMS
    counts = [*tally(distinct(claims)["holds"]).values()]
    hold, fail, undecided, *without = counts
    alone = (
        f"; without an interval, {without[0]} hold and {without[1]} fail" if any(without) else ""
    )
    said = f"{hold} hold, {fail} fail and {undecided} are undecided{alone}"
    return f"Of {sum(counts)} claims of the paper {said}."


def tally(verdicts: pd.Series) -> dict[str, int]:
    """Count how many claims hold, fail and so on, by what they do."""
    return {does: int((verdicts == verdict).sum()) for verdict, does in _VERDICTS.items()}


def _claims_of(
    figure: str, claims: pd.DataFrame, labels: Mapping[str, str], rules: Mapping[str, str]
) -> Section:
    found = findings(claims, labels)
    text = " ".join(dict.fromkeys(rules[claim] for claim in claims["claim"]))
    rows = list(found.itertuples(index=False, name=None))
    return Section(figure, text, [*found], rows)


_SEEDS_RULE = (
    "The same networks, trained by the same recipe with other seeds: what is measured of each, and "
    "how far the largest value is from the smallest. A difference between two models that is no "
    "larger may be one of their trainings alone. The last row is the mean of the ranges of shares."
)
SEEDS = ("claim", "measured", "range")


def seeds(
    claims: pd.DataFrame, labels: Mapping[str, str], repeats: Sequence[Sequence[str]]
) -> list[Section]:
    """Return a section for each network that was trained several times: how far claims move."""
    once = distinct(claims) if len(claims) else claims
    once = once[once["versus"].isna() & once["snapshot"].isna() & once["measured_value"].notna()]
    sections = []
    for models in repeats:
        of_models = once[once["model"].isin(models)]
        rows = [
            (
                str(of["statement"].iloc[0]),
                "; ".join(_finding(row, "measured") for row in of.to_dict("records")),
                _range(of),
            )
            for _, of in of_models.groupby("claim", sort=False)
            if len(of) == len(models)
        ]
        if rows:
            title = f"Seeds: {', '.join(labels[model] for model in models)}"
            mean = _mean_range(of_models, len(models))
            sections.append(Section(title, _SEEDS_RULE, SEEDS, [*rows, *mean]))
    return sections


def _spread(rows: pd.DataFrame) -> float:
    return float(rows["measured_value"].max() - rows["measured_value"].min())


def _range(rows: pd.DataFrame) -> str:
    is_share = rows["measure"].iloc[0].startswith("share")
    return f"{100 * _spread(rows):.0f} %" if is_share else f"{_spread(rows):.3f}"


def _mean_range(rows: pd.DataFrame, trainings: int) -> list[tuple[str, str, str]]:
    """Return a row with the mean of the ranges of shares, if there are any."""
    shares = rows[rows["measure"].str.startswith("share")]
    ranges = [_spread(of) for _, of in shares.groupby("claim") if len(of) == trainings]
    count = f"{len(ranges)} claims"
    return [("mean", count, f"{100 * sum(ranges) / len(ranges):.0f} %")] if ranges else []


def _number(number: float) -> str:
    return "–" if pd.isna(number) else f"{number:.3f}"


def _agreement_of(agreement: pd.DataFrame, labels: Mapping[str, str]) -> Section:
    header = ("figure", "model", "published series", "rank correlation", "normalized error")
    rows = [
        (
            row["figure"],
            labels[row["model"]],
            f"{row['published_series']}, {row['published_points']} points",
            _number(row["rank_correlation"]),
            _number(row["normalized_rmse"]),
        )
        for row in agreement.to_dict("records")
    ]
    return Section("Agreement with the published curves", _AGREEMENT_RULE, header, rows)


def sections(
    claims: pd.DataFrame,
    agreement: pd.DataFrame,
    labels: Mapping[str, str],
    evidence: Iterable[Evidence],
    repeats: Sequence[Sequence[str]] = (),
) -> list[Section]:
    """Return a summary, sections for each figure and for seeds, and one for the scores.

    `labels` are what to call the models; the rules of the claims are in `evidence`; `repeats` are
    models that are the same network, trained with several seeds.
    """
    rules = {claim.name: claim.rule for each in evidence for claim in each.claims}
    found = [
        _claims_of(str(figure), of_figure, labels, rules)
        for figure, of_figure in claims.groupby("figure", sort=False)
    ]
    scores = [] if agreement.empty else [_agreement_of(agreement, labels)]
    moved = seeds(claims, labels, repeats)
    return [*summary(claims, labels), *found, *moved, *scores]
