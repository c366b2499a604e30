"""Hold vitscope against the second reading on networks of other libraries.

`--seed today` draws others than yesterday. Each has two minutes of processor time; what a
name begins with runs those alone.
"""

import argparse
import signal
import sys
import traceback
from collections import Counter
from datetime import UTC, datetime
from time import process_time
from typing import Any

import torch

from tests.second.catalog import Listed, built, listed
from tests.second.comparing import FAILED, RIGHT, TOLD, LateError, Outcome, compare

SECONDS = 120
UNBUILT, UNREAD, LATE = "not built", "unread", "out of time"
# Fewer of those that are built are refused.
LEAST_READ = 0.6


def _end(*_: Any) -> None:
    raise LateError


def outcome_of(network: Listed, seed: int) -> Outcome:
    signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        try:
            model, images = built(network, seed)
        except LateError:
            raise
        except Exception as error:
            return Outcome(UNBUILT, why=f"{type(error).__name__}: {error}")
        try:
            return compare(model, images)
        except LateError:
            raise
        except Exception:
            # The second reader's own limits.
            return Outcome(UNREAD, why=traceback.format_exc())
    except LateError:
        return Outcome(LATE)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.second", description=__doc__)
    parser.add_argument("name", nargs="?", help="how names begin: these networks alone", default="")
    parser.add_argument("--seed", default="0", help="the seed of the list; or `today`")
    parser.add_argument("--count", type=int, default=200, help="how many networks of the list")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of these")
    options = parser.parse_args()
    torch.set_num_threads(1)
    today = options.seed == "today"
    seed = datetime.now(UTC).toordinal() if today else int(options.seed)
    counts: Counter[str] = Counter()
    networks = [each for each in listed(seed) if each.name.startswith(options.name)]
    for network in networks[options.first : options.first + options.count]:
        start = process_time()
        outcome = outcome_of(network, seed)
        counts[outcome.verdict] += 1
        seconds = process_time() - start
        print(f"{outcome.verdict:12}{seconds:6.1f} s  {network.name}", flush=True)
        said = [*outcome.silent, *outcome.told[:3], *outcome.why.splitlines()[-3:]]
        for line in said if outcome.verdict != RIGHT else ():
            print(f"    {line[:300]}", flush=True)
    print(f"{sum(counts.values())} networks of the list of seed {seed}: {dict(counts)}")
    few = counts[RIGHT] + counts[TOLD] < LEAST_READ * (sum(counts.values()) - counts[UNBUILT])
    sys.exit(few or any(counts[each] for each in FAILED))


if __name__ == "__main__":
    main()
