"""Attention rollout of a few images, one at a time."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vitscope.measures.attending import attention_of
from vitscope.measures.attention.rolling import Rollout
from vitscope.measures.given import OnModel
from vitscope.measures.shown import images_shown, name_class


def measure_attention_rollout(
    given: OnModel, heads: str, discard: float, chosen: Mapping[str, Any]
) -> pd.DataFrame:
    """Return what the output looks at, for the images that are shown."""
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    rollout = Rollout(attentions)
    found = []
    for row, picture, image in images_shown(given, **chosen):
        returned = rollout.run(network, image, heads, discard)
        of, values = rollout.result()
        height, width = rollout.grid
        found.append(
            {
                "model": given.model,
                "image": row,
                "fusion": f"{heads}, lowest {100 * discard:g} % discarded" if discard else heads,
                "of": of,
                "height": height,
                "width": width,
                "rollout": values.double().tolist(),
                "picture": picture,
                **name_class(given, returned),
            }
        )
    return pd.DataFrame(found)
