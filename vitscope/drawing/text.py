"""Text in figures."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitscope.claims.published import Published

INTERVAL = "95 % interval"


def literal(text: str) -> str:
    """Return a text as matplotlib shows it as it is: none of it is taken for a formula."""
    return text.replace("$", r"\$")


def percent(share: float, form: str = ".0f") -> str:
    """Return a share in percent."""
    return f"{100 * share:{form}} %"


def another_model(curves: Iterable["Published"]) -> bool:
    """Return whether any published curve is of another model than the measured one."""
    return any(not curve.same_model for curve in curves)


def published_label(
    curves: Iterable["Published"],
    *,
    others: str = "another model",
    axis: str = "right axis",
    always_own_axis: bool = False,
) -> str:
    """Return what the legend calls published values.

    Those of `others` than the measured models have an axis of their own: the legend says which.
    """
    apart = another_model(curves)
    whose = f", {others}" if apart else ""
    where = f" ({axis})" if apart or always_own_axis else ""
    return f"published{whose}{where}"
