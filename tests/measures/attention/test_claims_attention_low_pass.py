"""The claim that attention is a low-pass filter, counted by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count_alone

KIND = "attention_low_pass"


def heads(let_through: list[float], resampled: list[Any] | None = None) -> pd.DataFrame:
    """Return a table of heads of one attention, and of their mean."""
    head = pd.array([*range(len(let_through)), None], dtype="Int32")
    columns: dict[str, Any] = {"let_through": [*let_through, 9.0]}
    if resampled:
        columns["let_through_resampled"] = [*resampled, None]
    return pd.DataFrame({"model": "vit", "attention": 0, "head": head, **columns})


EXAMPLES = {KIND: {KIND: heads([0.5, 1.5, 0.9]), "blocks": blocks("vit")}}


def counted(table: pd.DataFrame) -> dict[str, dict[Any, Any]]:
    return count_alone(KIND, table).droplevel("model").to_dict("index")


def test_by_hand() -> None:
    filters = counted(EXAMPLES[KIND][KIND])["heads_are_low_pass_filters"]
    # Of the heads alone: the mean is none of them.
    assert (filters["measured_count"], filters["measured_total"]) == (2, 3)
    assert filters["holds"] == "yes, without an interval"
    # Where values cannot be read, nothing is counted.
    assert counted(heads([np.nan])) == {}


def test_heads_that_resamples_turn_around_are_uncertain() -> None:
    resampled = [np.linspace(0.4, 0.6, 40), np.linspace(1.4, 1.6, 40), np.linspace(0.8, 1.1, 40)]
    row = counted(heads([0.5, 1.5, 0.9], resampled))["heads_are_low_pass_filters"]
    assert (row["measured_count"], row["measured_total"], row["certain"]) == (2, 3, 2)
    # Two of three in most resamples, else one.
    assert (row["measured_low"], row["measured_high"]) == (1 / 3, 2 / 3)
    assert row["holds"] == "open"
    assert row["margin"] == pytest.approx(0.1 / 3, rel=1e-12)
