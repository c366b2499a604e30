"""Compare drawn networks: those of seeds from one to before another, or one by its spec."""

import contextlib
import io
import sys
from collections import Counter

import torch

from tests.drawn import compare, draw, read
from tests.drawn.comparing import FAILED, Outcome
from tests.drawn.specs import Network


def quietly(spec: Network) -> Outcome:
    """Compare a network without what vitscope prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        return compare(spec)


def main() -> None:
    """Compare what the command line says."""
    torch.set_num_threads(1)
    if not sys.argv[1].isdigit():
        print(quietly(read(sys.argv[1])))
        return
    counts: Counter[str] = Counter()
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        outcome = quietly(draw(seed))
        counts[outcome.verdict] += 1
        if outcome.verdict in FAILED or "-v" in sys.argv:
            print(outcome)
    print(dict(counts))


if __name__ == "__main__":
    main()
