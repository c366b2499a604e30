"""CKA between two networks: the similarity of each cut point of one with each of the other."""

from vitscope.measures.cka.measure import OfCka
from vitscope.measures.measure import FigureKind


class CkaBetween(OfCka):
    """The similarity of the feature maps of two networks, in batches as of one."""

    of_pairs = True

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"cka_between": self.kind(tables=("blocks",))}


MEASURE = CkaBetween()
