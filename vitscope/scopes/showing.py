"""Let notebooks show figures."""

import sys
from io import BytesIO

from matplotlib.figure import Figure


def show_in_notebooks() -> None:
    """Tell a notebook how figures look; where pyplot was imported, it knows and does as it is set.

    Figures are drawn without pyplot, which would keep each of them until it is closed.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    pictures = shell.display_formatter.formatters["image/png"]
    if Figure not in pictures:
        pictures.for_type(Figure, _picture)


def _picture(figure: Figure) -> bytes:
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=figure.dpi, bbox_inches="tight")
    return drawn.getvalue()
