"""Run what takes too long for every change, the short before the long, each for a bounded time.

Every test that is marked `nightly` is of one step: the first has those that no other has. With
`--one-for MINUTES`, run the step of the day until it fails or its time is over.
"""

import argparse
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Step:
    """Tests at a path, or a module that tries so many cases; it fails when its minutes are over."""

    what: str
    minutes: int
    tests: str = "tests"
    module: str = ""
    cases: tuple[str, int] = ("", 0)

    def command(self, minutes: int) -> list[str]:
        """Return what is run in so many minutes: of its tests those that no other step has."""
        python = [sys.executable, "-m"]
        if self.module:
            option, count = self.cases
            if minutes < self.minutes:
                # Beside the checks of a change everything takes about three times as long.
                count = count * minutes // (3 * self.minutes)
            # A change is held against the same cases as the last one; the night brings new ones.
            seed = "0" if minutes < self.minutes else "today"
            return [*python, self.module, "--seed", seed, option, str(count)]
        inside = [step.tests for step in STEPS if step.tests.startswith(f"{self.tests}/")]
        others = [f"--ignore={path}" for path in inside]
        # One that fails must be heard of before the time is over.
        first = ["-x"] if minutes < self.minutes else []
        command = ["pytest", "-v", *first, "-m", "nightly", "--durations=10", self.tests]
        return [*python, *command, *others]


STEPS = (
    Step("slow tests of the library, plans, promises, real data", 120),
    Step("Slurm: dead nodes, killed runs, too little memory", 20, "tests/slurm"),
    Step("the study of the paper, with golden weights", 20, "tests/runs/test_golden_study.py"),
    Step("damage, full disks, clocks, caches", 30, "tests/faults"),
    Step("2,000 networks that nobody wrote", 45, module="tests.drawn", cases=("--count", 2000)),
    Step(
        "200 networks of libraries, by a second reader",
        24,
        module="tests.second",
        cases=("--count", 200),
    ),
    Step(
        "damaged files for every reader", 30, module="tests.security.fuzz", cases=("--runs", 2000)
    ),
    Step("runs that are killed 20 times", 60, "tests/faults/test_kills.py"),
)


def run(step: Step, minutes: int, over: str = "failed (out of time)") -> str:
    command = step.command(minutes)
    print(f"\n=== {step.what}, {minutes} minutes at most\n+ {' '.join(command)}", flush=True)
    start = perf_counter()
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        try:
            code = process.wait(60 * minutes)
            ended = "passed" if code == 0 else f"failed ({code})"
        except subprocess.TimeoutExpired:
            ended = over
        finally:
            # With all that it has started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return f"{ended:22}{(perf_counter() - start) / 60:6.1f} min  {step.what}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one-for", type=int, metavar="MINUTES")
    minutes = parser.parse_args().one_for
    now = datetime.now(UTC)
    print(f"{now:%Y-%m-%d %H:%M} UTC")
    if minutes:
        ended = [run(STEPS[now.toordinal() % len(STEPS)], minutes, "no failure so far")]
    else:
        ended = [run(step, step.minutes) for step in STEPS]
    print("\n".join(["", "=== nightly", *ended]), flush=True)
    sys.exit(any(line.startswith("failed") for line in ended))


if __name__ == "__main__":
    main()
