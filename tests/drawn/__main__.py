"""Compare drawn networks with vitscope: those of some seeds, or one by its printed spec.

`--seed today` draws others than yesterday. Whatever fails is reduced to the smallest network that
fails alike, and its command is printed: it belongs in `kept.py`.
"""

import argparse
import contextlib
import io
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import torch

from tests.drawn import compare, draw, read
from tests.drawn.comparing import FAILED, RIGHT, Outcome
from tests.drawn.shrinking import shrink_outcome

# Fewer are told of or refused; and no more than so many are reduced.
LEAST_RIGHT, REDUCED = 0.5, 10


def quietly(make: Callable[[Any], Outcome], given: Any) -> Outcome:
    with contextlib.redirect_stdout(io.StringIO()):
        return make(given)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.drawn", description=__doc__)
    parser.add_argument("spec", nargs="?", help="a printed spec: this network alone")
    parser.add_argument("--seed", default="0", help="the first seed; or `today`")
    parser.add_argument("--count", type=int, default=100, help="how many networks are drawn")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.spec:
        print(quietly(compare, read(options.spec)))
        return
    today = options.seed == "today"
    first = options.count * datetime.now(UTC).toordinal() if today else int(options.seed)
    counts: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for seed in range(first, first + options.count):
        outcome = quietly(compare, draw(seed))
        counts[outcome.verdict] += 1
        if outcome.verdict in FAILED:
            causes[outcome.cause] += 1
            print(f"seed {seed}: {outcome}", flush=True)
            if causes[outcome.cause] == 1 and len(causes) <= REDUCED:
                print(f"smallest: {quietly(shrink_outcome, outcome)}", flush=True)
    print(f"{options.count} networks from seed {first} on: {dict(counts)}")
    sys.exit(bool(causes) or counts[RIGHT] < LEAST_RIGHT * options.count)


if __name__ == "__main__":
    main()
