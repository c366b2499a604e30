"""Progress bars in notebooks and terminals, and none in logs."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from tqdm import TqdmWarning

from vitscope.networks.building.networks import count_images

with warnings.catch_warnings():
    # It would warn every notebook that has no ipywidgets.
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm import auto


@contextmanager
def bar(network: nn.Module, what: str, total: float | None) -> Iterator[None]:
    """Show how many images a network has been given, of `total` if that is known."""
    # A bar of a notebook is an object of the page; one of text needs somebody who watches.
    watched = auto.notebook_tqdm is not auto.std_tqdm or sys.stderr.isatty()
    options: dict[str, Any] = {"desc": what, "unit": "image", "leave": False}
    options |= {} if watched else {"disable": True}
    with auto.tqdm(total=total and round(total), **options) as shown:
        hook = count_images(network, shown.update)
        try:
            yield
        finally:
            hook.remove()
