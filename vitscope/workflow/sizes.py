"""How large latents are, told from the block table before they exist."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

VALUE_BYTES = {"float32": 4, "bfloat16": 2}


def latents_bytes(blocks: "pd.DataFrame", images: int, dtype: str) -> int:
    """Return the bytes of the feature maps of some images at all cut points of a model."""
    values = (blocks["channels"] * blocks["height"] * blocks["width"]).sum()
    return int(values) * images * VALUE_BYTES[dtype]
