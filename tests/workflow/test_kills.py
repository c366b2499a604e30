"""A run that is killed at any moment and started again ends as if nothing had happened."""

import fcntl
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.workflow.copies import TINY, copy_workflow

pytestmark = pytest.mark.workflow

SECONDS = (2, 8)


def test_killed_runs_end_with_the_same_bytes(tmp_path: Path, studies, finished):
    workflow = copy_workflow(tmp_path / "copy", studies)
    chance = random.Random(9)
    # First with all its jobs, as by a power cut, then alone: then its jobs live on beside the next.
    for kill in (os.killpg, os.killpg, os.kill, os.kill):
        process = workflow.start(*TINY, start_new_session=True, stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(*SECONDS))
        kill(process.pid, signal.SIGKILL)
        process.wait()
    workflow.make(*TINY)
    made = workflow.digests("results", "figures")
    # Hidden files are among these: what a killed job had begun is gone.
    assert made == finished.digests("results/tiny", "figures/tiny")


def test_a_second_run_in_the_same_folder_is_refused(finished):
    with (finished.root / ".snakemake/run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, output = finished.run("--forcerun", "tabulate", *TINY, default="tiny")
    assert code != 0
    assert output.endswith("vitscope: another run is at work in this folder: wait for it to end.\n")
    assert "Traceback" not in output
