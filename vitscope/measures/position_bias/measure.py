"""Position bias: what attention adds for the offset between two positions."""

from vitscope.measures.measure import FigureKind, Measure

MEASURE = Measure(needs="network", figures={"position_bias": FigureKind()})
