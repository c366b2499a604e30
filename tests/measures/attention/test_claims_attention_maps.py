"""Claims about maps of attention, counted by hand."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count


def heads(model: str, shares: Sequence[float | None]) -> pd.DataFrame:
    """Return the maps of heads of an image, and one of a query; the subject is a quarter of it."""
    fixed = {"model": model, "image": 0, "subject": 0.25}
    rows = [
        {**fixed, "head": number, "shows": "heads", "on_subject": each}
        for number, each in enumerate(shares)
    ]
    return pd.DataFrame([*rows, {**fixed, "head": 0, "shows": "queries", "on_subject": 1.0}])


EXAMPLES = {
    "attention_heads": {
        "attention_maps": heads("vit", [0.2, 0.3, 0.7, 0.8]),
        "blocks": blocks("vit"),
    }
}


def test_heads_on_the_subject() -> None:
    table = pd.concat([heads("vit", [0.2, 0.3, 0.7, 0.8]), heads("swin", [0.1, 0.2, 0.3, 0.4])])
    tables = {"attention_maps": table, "blocks": blocks("vit")}
    traits, models = {"vit": {"pretraining.self_supervision": ["swin"]}}, ["vit", "swin"]
    found = count("attention_heads", tables, models, traits_of=traits)
    alone, against = found[found["model"] == "vit"].to_dict("records")
    assert (alone["measured_count"], alone["measured_total"]) == (3, 4)
    assert against["measured_value"] == pytest.approx(0.5 - 0.25)
    assert against["holds"] == "yes, without an interval"
    # Without a mask there is nothing to count.
    unknown = {**tables, "attention_maps": table.assign(on_subject=np.nan)}
    found = count("attention_heads", unknown, models, traits_of=traits)
    assert found["measured_value"].isna().tolist() == [True]
