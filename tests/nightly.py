"""Run what takes too long for every change, the short before the long, each for a bounded time.

Every test that is marked `nightly` is of one step: the first has those that no other has.
"""

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
    """Tests at a path, or a module that is run; it fails when its minutes are over."""

    what: str
    minutes: int
    tests: str = "tests"
    module: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """Return what is run: of its tests those that no other step has."""
        python = [sys.executable, "-m"]
        if self.module:
            return [*python, *self.module]
        inside = [step.tests for step in STEPS if step.tests.startswith(f"{self.tests}/")]
        others = [f"--ignore={path}" for path in inside]
        return [*python, "pytest", "-v", "-m", "nightly", "--durations=10", self.tests, *others]


STEPS = (
    Step("slow tests of the library, plans, promises", 45),
    Step("Slurm: dead nodes, killed runs, too little memory", 20, "tests/slurm"),
    Step("the study of the paper, with golden weights", 20, "tests/runs/test_golden_study.py"),
    Step("damage, full disks, clocks, caches", 60, "tests/faults"),
    Step(
        "2,000 networks that nobody wrote",
        45,
        module=("tests.drawn", "--seed", "today", "--count", "2000"),
    ),
    Step("damaged files for every reader", 30, module=("tests.security.fuzz", "--seed", "today")),
    Step("runs that are killed 20 times", 120, "tests/faults/test_kills.py"),
)


def run(step: Step) -> str:
    """Run a step to its end or to that of its time; return how it ended."""
    command = step.command()
    print(f"\n=== {step.what}, {step.minutes} minutes at most\n+ {' '.join(command)}", flush=True)
    start = perf_counter()
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        try:
            code = process.wait(60 * step.minutes)
            ended = "passed" if code == 0 else f"failed ({code})"
        except subprocess.TimeoutExpired:
            ended = "failed (out of time)"
        finally:
            # With all that it has started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return f"{ended:22}{(perf_counter() - start) / 60:6.1f} min  {step.what}"


def main() -> None:
    """Run all steps, whichever fail; tell how each ended."""
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    ended = [run(step) for step in STEPS]
    print("\n".join(["", "=== nightly", *ended]), flush=True)
    sys.exit(any(line.startswith("failed") for line in ended))


if __name__ == "__main__":
    main()
