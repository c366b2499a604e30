"""Maps of what the score of a class depends on, of a few images."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vitscope.measures.class_maps.explaining import Explainer
from vitscope.measures.given import OnModel
from vitscope.measures.shown import images_shown, name_class


def measure_class_maps(
    given: OnModel, explained: Mapping[str, Any], chosen: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the maps of all methods, for the images that are shown."""
    explainer = Explainer(given, **explained)
    found = []
    for row, picture, image in images_shown(given, **chosen):
        logits, number, maps = explainer.explain(image)
        facts = {"model": given.model, "image": row, "picture": picture}
        facts |= name_class(given, logits, number)
        for method, of, values in maps:
            height, width = values.shape
            shape = {"method": method, "of": of, "height": height, "width": width}
            found.append({**facts, **shape, "values": values.flatten().tolist()})
    return pd.DataFrame(found)
