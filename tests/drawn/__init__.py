"""Networks that nobody wrote: drawn by a seed, each with its own truth.

    from tests.drawn import draw, build, truth_of, compare

`python -m tests.drawn --seed 0 --count 200` compares those of the seeds 0 to 199, `python -m
tests.drawn SPEC` one, by its printed spec.
"""

from tests.drawn.comparing import compare
from tests.drawn.networks import draw
from tests.drawn.specs import read
from tests.drawn.truth import build, truth_of

__all__ = ["build", "compare", "draw", "read", "truth_of"]
