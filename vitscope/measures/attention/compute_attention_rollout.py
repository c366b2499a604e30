"""Attention rollout of a few images, one at a time."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vitscope.measures.attending import attention_of
from vitscope.measures.attention.rolling import Rollout
from vitscope.measures.given import OnModel
from vitscope.measures.shown import pictures, rows_shown


def measure(given: OnModel, heads: str, chosen: Mapping[str, Any]) -> pd.DataFrame:
    """Return what the output looks at, for the images that are shown."""
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    rows = rows_shown(given, **chosen)
    mean, std = given.settings["mean"], given.settings["std"]
    rollout = Rollout(attentions)
    found = []
    for row, picture in zip(rows, pictures(given, rows), strict=True):
        image = given.images.normalize([row], mean, std).to(given.device)
        rollout.run(network, image, heads)
        of, values = rollout.result()
        height, width = rollout.grid
        found.append(
            {
                "model": given.model,
                "image": row,
                "fusion": heads,
                "of": of,
                "height": height,
                "width": width,
                "rollout": values.double().tolist(),
                "picture": picture,
            }
        )
    return pd.DataFrame(found)
