"""What the rows of one claim say together: in how many networks it holds, and in which."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from vitscope.claims.verdicts import say_how_many

# More networks than these are counted and not named.
_NAMED = 3
# Where the paper states a claim; others follow it or are of others.
_PAPER = ("Fig.", "Section", "abstract")


# How verdicts end that nothing tells from chance.
WITHOUT_INTERVAL = "without an interval"


class Across(NamedTuple):
    """The rows of a claim in which it holds, in which it fails, and in which it is open."""

    holds: pd.DataFrame
    fails: pd.DataFrame
    open: pd.DataFrame

    @property
    def verdict(self) -> str:
        """The verdict of most rows, as a verdict on one network; "open" if none is ahead.

        Rows without an interval have no vote where others have one.
        """
        rows = pd.concat(self)["holds"]
        if rows.nunique() == 1:
            return str(rows.iloc[0])
        if (bare := rows.str.endswith(WITHOUT_INTERVAL)).any() and not bare.all():
            return across_networks(pd.concat(self)[~bare]).verdict
        holds, fails, undecided = map(len, self)
        ahead = max(holds, fails)
        if holds == fails or undecided > ahead:
            return "open"
        return f"{'yes' if holds > fails else 'no'}, in this network"


def of_the_paper(claims: pd.DataFrame) -> pd.Series:
    """Return of each row whether the paper states the claim."""
    return claims["source"].str.startswith(_PAPER)


def across_networks(rows: pd.DataFrame) -> Across:
    """Sort the rows of one claim by their verdicts; rows without a verdict are left out."""
    said = rows["holds"].str.partition(",")[0]
    return Across(*(rows[said == verdict] for verdict in ("yes", "no", "open")))


def say_across(found: Across, labels: Mapping[str, str]) -> str:
    """Say in how many networks a claim holds, and in which, if they or the others are few."""
    rows = pd.concat(found)
    if len(rows) == 1:
        (row,) = rows.to_dict("records")
        return f"{name_subject(row, labels)}{say_how_many(row)}"
    what = "networks" if rows["versus"].isna().all() else "pairs"
    if rows["snapshot"].nunique() > 1:
        what += " and moments"
    holds, fails, undecided = map(len, found)
    text = f"holds in {holds} of {len(rows)} {what}"
    bare = int(rows["holds"].str.endswith(WITHOUT_INTERVAL).sum())
    if 0 < holds <= _NAMED and holds <= fails:
        text += f" ({_list_names(found.holds, labels)})"
    elif 0 < fails <= _NAMED:
        text += f" (not in {_list_names(found.fails, labels)})"
    text += f", open in {undecided}" if undecided else ""
    return f"{text}; {bare} {WITHOUT_INTERVAL}" if bare else text


def name_subject(row: Mapping[Any, Any], labels: Mapping[str, str]) -> str:
    return " / ".join(labels[row[each]] for each in ("model", "versus") if not pd.isna(row[each]))


def _list_names(rows: pd.DataFrame, labels: Mapping[str, str]) -> str:
    return ", ".join(dict.fromkeys(name_subject(row, labels) for row in rows.to_dict("records")))


def common_statement(rows: pd.DataFrame) -> str:
    """Return the statement of rows of one claim, without what only some of them add to it."""
    statements = rows["statement"].unique()
    if len(statements) == 1:
        return str(statements[0])
    return min((str(each).partition("; of ")[0].partition(" (")[0] for each in statements), key=len)
