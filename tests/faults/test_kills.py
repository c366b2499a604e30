import os
import random
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.runs.copies import EVERYTHING, Workflow, copy_workflow

pytestmark = pytest.mark.nightly

KILLS, SECONDS = 20, 3.0
# First with all its jobs, as by a power cut, then alone: then its jobs live on beside the next run.
WAYS = (os.killpg, os.kill)

Job = tuple[str, str]


def finished_in(output: str) -> list[Job]:
    """Return the jobs that a run said to have finished: their rules, and what they do."""
    does = dict(re.findall(r"^Job (\d+): (.*)$", output, re.MULTILINE))
    done = re.findall(r"^Finished jobid: (\d+) \(Rule: (\w+)\)$", output, re.MULTILINE)
    # The rule `all` makes nothing, and tells of nothing.
    return [(rule, does[job]) for job, rule in done if rule != "all"]


def killed(workflow: Workflow, jobs: int) -> list[Job]:
    """Kill a run at random moments spread over its life, let it end, and return what it did.

    Every life is as long as it takes until the next share of all jobs is done, and a random time.
    """
    chance = random.Random(KILLS)
    done: list[Job] = []
    for number in range(KILLS):
        log = workflow.root / "life.log"
        with log.open("w") as output:
            process = workflow.start(
                "--cores", "2", "all", default=EVERYTHING, start_new_session=True, stdout=output
            )
            while process.poll() is None:
                if len(done) + log.read_text().count("Finished jobid: ") >= jobs * number // KILLS:
                    break
                time.sleep(0.05)
            time.sleep(chance.uniform(0, SECONDS))
            if process.poll() is None:
                WAYS[number % 2](process.pid, signal.SIGKILL)
            process.wait()
        workflow.make("--unlock", "all", default=EVERYTHING)
        done += finished_in(log.read_text())
    return done + finished_in(workflow.make("--cores", "2", "all", default=EVERYTHING))


def test_runs_of_everything_that_are_killed_20_times(tmp_path: Path, every_kind: Workflow) -> None:
    """As a run in which nothing happened: the same bytes, and nothing done twice."""
    jobs = finished_in((every_kind.root / "run.log").read_text())
    workflow = copy_workflow(tmp_path / "copy", every_kind.studies)
    done = killed(workflow, len(jobs))
    # Hidden files are among these: what a killed job had begun is gone.
    assert workflow.digests("results", "figures") == every_kind.digests("results", "figures")
    assert [job for job, times in Counter(done).items() if times > 1] == []
    assert set(done) <= set(jobs)
    # A run that is killed after a job ended and before it could say so does not tell of it.
    print(f"{len(jobs)} jobs, of which {len(set(done))} said that they ended, none of them twice")
