"""Say verdicts in words: how many are in favour, and what makes a verdict doubtful."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from vitscope.claims.statistics import HALF

# A verdict is marked if more than this share of verdicts that are as sure are false.
DOUBTED = 0.05


def verdict_to_show(row: Mapping[Hashable, Any]) -> str | None:
    """Return the verdict on the recipe or, without one, on the single network."""
    if pd.isna(row["measured_value"]):
        return None
    if row["recipe_verdict"] != "one training":
        return str(row["recipe_verdict"])
    of_network = str(row["measured_verdict"])
    return f"{of_network}, in this network" if of_network in ("yes", "no") else of_network


def say_verdict(row: Mapping[Hashable, Any]) -> str | None:
    """Return a row's verdict in words: how many of what is counted, and q if that is too high."""
    if pd.isna(row["holds"]):
        return None
    known = row["holds"] == "open" and pd.notna(row["batches"])
    if known and row["batches"] < row["fewest_batches"]:
        few = f"{row['batches']:.0f} of {row['fewest_batches']:.0f}"
        return f"open: too few batches to decide ({few})"
    verdict, _, about = str(row["holds"]).partition(", ")
    return f"{verdict}{say_how_many(row)}{about and f', {about}'}{say_doubt(row)}"


def is_hint(claims: Any) -> Any:
    """Tell of a row, or of each of several, whether its verdict is no result: its q is too high."""
    return (claims["holds"] != "open") & (claims["q"] > DOUBTED)


def say_doubt(row: Mapping[Hashable, Any]) -> str:
    """Return what makes a row's verdict doubtful, as an ending: its q, its networks."""
    # With a third digit where two would not say that it is too high.
    digits = 2 if round(row["q"], 2) > DOUBTED else 3
    doubts = [f"q {row['q']:.{digits}f}"] if is_hint(row) else []
    doubts += [row["doubt"]] if pd.notna(row.get("doubt")) else []
    return f" ({'; '.join(doubts)})" if doubts else ""


def say_how_many(row: Mapping[Hashable, Any]) -> str:
    """Say how many cases are in favour, as an ending: all, most or a number; "" if none count."""
    if pd.isna(row["measured_total"]):
        return ""
    counts = row["values"] if row["trainings"] > 1 else [row["measured_count"]]
    total = int(row["measured_total"])
    holds = str(row["holds"]).startswith("yes")
    if holds and total > 1 and all(count == total for count in counts):
        return f", all {total}"
    most = ", most" if holds and total > 1 and row["holds_above"] == HALF else ""
    return f"{most} ({', '.join(f'{count:.0f}' for count in counts)} of {total})"
