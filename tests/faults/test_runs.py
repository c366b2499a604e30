import os
import signal
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.runs.copies import SOME, TINY, Workflow, copy_workflow, edited, in_work
from tests.slurm.cluster import wait_for

pytestmark = pytest.mark.others

YEAR = 365 * 24 * 3600


WRITTEN = '        BLOCKS.write(blocks.table, outputs["blocks"], blocks.metadata())\n'


def asleep(workflow: Workflow, seconds: int = 600) -> AbstractContextManager[None]:
    """Let jobs that list blocks sleep when they have written these."""
    slept = f"{WRITTEN}        import time\n\n        time.sleep({seconds})\n"
    return edited(
        workflow.root / "vitscope/jobs/networks.py", lambda text: text.replace(WRITTEN, slept)
    )


def test_a_run_refuses_a_second_one_and_ends_with_its_jobs(tmp_path: Path, studies: Path) -> None:
    """By Ctrl-C, which the terminal sends to jobs too; nothing is locked afterwards."""
    workflow = copy_workflow(tmp_path / "copy", studies)
    table = f"results/{TINY}/blocks/vit.parquet"
    with asleep(workflow):
        run = workflow.start("--cores", "1", table, start_new_session=True, stdout=subprocess.PIPE)
        wait_for((workflow.root / table).exists, "no blocks were listed")
        code, output = workflow.run("--cores", "1", table)
        assert code != 0
        assert "Directory cannot be locked" in output
        assert "Traceback" not in output
        assert run.poll() is None
        begun = time.monotonic()
        os.killpg(run.pid, signal.SIGINT)
        output, _ = run.communicate(timeout=60)
    assert time.monotonic() - begun < 10
    assert run.returncode != 0
    assert "Traceback" not in output
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)
    assert workflow.plan(table) == {"convert_checkpoint": 1}
    workflow.make("--cores", "1", table)


def test_a_run_that_was_killed_leaves_a_lock_that_the_user_removes(
    tmp_path: Path, studies: Path
) -> None:
    workflow = copy_workflow(tmp_path / "copy", studies)
    table = f"results/{TINY}/blocks/vit.parquet"
    with asleep(workflow):
        run = workflow.start("--cores", "1", table, start_new_session=True, stdout=subprocess.PIPE)
        wait_for((workflow.root / table).exists, "no blocks were listed")
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    code, output = workflow.run("--cores", "1", table)
    assert code != 0
    assert "It can be removed with the --unlock argument." in output
    workflow.make("--unlock")
    workflow.make("--cores", "1", table)


@pytest.mark.nightly
def test_a_run_that_gets_sigterm_lets_its_jobs_end(tmp_path: Path, studies: Path) -> None:
    workflow = copy_workflow(tmp_path / "copy", studies)
    tables = [f"results/{TINY}/blocks/{model}.parquet" for model in ("vit", "resnet")]
    with asleep(workflow, 10):
        run = workflow.start("--cores", "1", *tables, stdout=subprocess.PIPE)
        made = [workflow.root / table for table in tables]
        wait_for(lambda: any(table.exists() for table in made), "no blocks were listed")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)
        assert run.returncode != 0
        # What was at work is made, and the other not.
        assert workflow.plan(*tables) == {"convert_checkpoint": 1}


def dated(folders: tuple[Path, ...], date: float) -> None:
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                os.utime(path, (date, date))


@pytest.mark.nightly
@pytest.mark.parametrize("years", [-20, 20])
def test_results_that_a_wrong_clock_has_dated(victim: Workflow, years: int) -> None:
    folders = (victim.root / "results", victim.root / "figures")
    dated(folders, time.time() + years * YEAR)
    assert victim.plan(*SOME, default=TINY) == {}
    with edited(victim.root / "vitscope/jobs/measures.py", in_work("merge_job")):
        assert victim.plan(*SOME, default=TINY)["measure_latents"] > 0


@pytest.mark.nightly
def test_a_clock_that_jumps_back_in_a_run(victim: Workflow) -> None:
    """What would be older than what it is made from is not made, and the dates are named."""
    before = victim.digests("results", "figures")
    data = victim.root / "results" / TINY / "data"
    dated((data,), time.time() + YEAR)
    shard = victim.root / "results" / TINY / "latents/vit/0.safetensors"
    merged = victim.root / "results" / TINY / "feature_variance/vit.parquet"
    shard.unlink()
    merged.unlink()
    # By name: Snakemake leaves out what no target needs any more.
    code, output = victim.run(*sorted(before), default=TINY)
    assert code != 0
    assert f"has older modification time ({time.strftime('%Y')}" in output
    assert f"than input results/{TINY}/data/shapes32/" in output
    assert "This could indicate a clock skew problem" in output
    dated((data,), time.time())
    victim.make(*sorted(before), default=TINY)
    assert victim.digests("results", "figures") == before
    assert victim.plan(*SOME, default=TINY) == {}
