"""Progress bars in notebooks and terminals, and none in logs."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from tqdm import TqdmWarning

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

        def count(module: nn.Module, args: Any, kwargs: Any) -> None:
            images = next(
                (each for each in (*args, *kwargs.values()) if hasattr(each, "shape")), ()
            )
            shown.update(len(images))

        hook = network.register_forward_pre_hook(count, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()
