"""Claims about attention as a low-pass filter, counted by hand, and one that must not hold."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.claims import blocks, count_alone
from vitscope.measures.attention.compute_attention_low_pass import VALUES, pass_by_head

KIND = "attention_low_pass"


def heads(let_through: list[float], room: list[float]) -> pd.DataFrame:
    """Return a table of heads of one attention, and of their mean."""
    columns = {"let_through": [*let_through, 9.0], "room": [*room, -9.0]}
    head = pd.array([*range(len(room)), None], dtype="Int32")
    return pd.DataFrame({"model": "vit", "attention": 0, "head": head, **columns})


EXAMPLES = {KIND: {KIND: heads([0.5, 1.5, 0.9], [0.2, 0.1, 0.3]), "blocks": blocks("vit")}}


def counted(table: pd.DataFrame) -> dict[str, dict[Any, Any]]:
    return count_alone(KIND, table).droplevel("model").to_dict("index")


def test_by_hand() -> None:
    found = counted(EXAMPLES[KIND][KIND])
    bound, filters = found["heads_keep_the_bound"], found["heads_are_low_pass_filters"]
    # Of the heads alone: the mean is none of them.
    assert (bound["measured_value"], bound["holds"]) == (0.1, "yes")
    assert (filters["measured_count"], filters["measured_total"]) == (2, 3)
    # Where values cannot be read, nothing is counted.
    assert counted(heads([np.nan], [np.nan])) == {}


ROWS = torch.randn(1, 1, 1, 8, 8, generator=torch.Generator().manual_seed(0)).double().softmax(-1)
VALUES_OF = 100 + torch.randn(8, 4, generator=torch.Generator().manual_seed(1)).double()
UNEVEN = ROWS * torch.linspace(0.5, 1, 8).double()[:, None]
CASES = {
    "as it is": (ROWS, VALUES_OF, "yes"),
    # Rows that do not sum to one let the mean of the values pass for something else.
    "uneven rows": (UNEVEN, VALUES_OF, "no"),
    # The output is that of values ten times as large as those that are shown.
    "wrong values": (ROWS, VALUES_OF / 10, "no"),
    # Of attention that is not the one that was used.
    "wrong weights": (torch.full_like(ROWS, 1 / 8), VALUES_OF, "no"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_bound_holds_of_what_is_attention_and_of_nothing_else(case: str) -> None:
    weights, values, holds = CASES[case]
    used = weights if case == "uneven rows" else ROWS
    (of_head,) = pass_by_head(weights, values[None, None, None], used @ VALUES_OF)[0].tolist()
    table = pd.DataFrame([dict(zip(VALUES, of_head, strict=True))])
    found = counted(table.assign(model="vit", head=0))["heads_keep_the_bound"]
    assert found["holds"] == holds
