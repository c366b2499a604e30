"""The claims of every kind of figure, as its measure declares them."""

from vitscope.claims.counting import evidence_of
from vitscope.measures import rooms

EVIDENCE = {
    kind: evidence
    for kind, figure in rooms.kinds().items()
    if (evidence := evidence_of(figure.measure, kind))
}
