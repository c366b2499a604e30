import re
import signal
import subprocess
from collections import Counter

import pytest

from tests.runs.copies import TINY, copy_workflow
from tests.slurm.cluster import wait_for

pytestmark = pytest.mark.others

# The profile as it is, but for what this cluster lacks, accounting, and to wait less.
SLURM = (
    *("--workflow-profile", "profiles/slurm", "--slurm-status-command", "squeue"),
    *("--slurm-init-seconds-before-status-checks", "1"),
)
# Of the shards of ViT all that is measured of latents: more at a time than a node has cores.
OF_VIT = ("fourier", "spectrum", "cka", "landscape")
TARGETS = ("figures/fig9.pdf", *(f"results/{TINY}/{table}/vit.parquet" for table in OF_VIT))
SHARDED = "results/sharded/feature_variance/vit.parquet"
LARGE = "results/large/feature_variance/vit.parquet"
TRAINED = "results/long/training/vit/epoch_80.safetensors"
SHARDS, SHARD = 4, "rule_extract_kept_latents"
# What comes before the shards of a model: one job each.
BEFORE = {"rule_build_split": 1, "rule_convert_checkpoint": 1}
BEFORE_SHARDS = (
    "results/sharded/blocks/vit.parquet",
    "results/sharded/checkpoints/vit.safetensors",
    "results/sharded/data/shapes32/test.safetensors",
)


def submitted(output):
    """Return which rule each job of Slurm is of: the folder of its log is named by it."""
    found = re.findall(r"submitted with SLURM jobid (\d+) \(log: \S*slurm_logs/(\w+)/", output)
    return dict(found)


def states(jobs):
    return Counter(job.state for job in jobs)


def start(workflow, *arguments):
    return workflow.start(*arguments, *SLURM, stdout=subprocess.PIPE)


def running(slurm, wanted, folder):
    """Return the running jobs of a folder and their nodes, once there are so many."""
    found = {}

    def enough():
        lines = slurm.ask("squeue", "-h", "-t", "RUNNING", "-o", "%A %N %M %Z").splitlines()
        jobs = [line.split(maxsplit=3) for line in lines]
        # Those that have run for some seconds: they are at work.
        found.clear()
        found.update({n: node for n, node, t, at in jobs if at == str(folder) and t > "0:02"})
        return len(found) >= wanted

    wait_for(enough, f"{wanted} jobs did not start")
    return found


def test_the_tables_are_those_of_one_machine(slurm, made, tmp_path):
    remote = copy_workflow(tmp_path / "copy", made.studies)
    before = len(slurm.finished())
    output = remote.make(*TARGETS, *SLURM, default=TINY)
    found = remote.digests(f"results/{TINY}", "figures")
    assert {path.rpartition("/")[0] for path in found} >= {
        "figures",
        *(f"results/{TINY}/{table}" for table in OF_VIT),
    }
    assert found.items() <= made.digests(f"results/{TINY}", "figures").items()
    jobs = slurm.finished()[before:]
    assert states(jobs) == {"COMPLETED": len(jobs)}
    kinds = submitted(output)
    assert kinds.keys() == {job.number for job in jobs}
    # Of the short jobs and of those that need the network, none was sent to a node; of each of two
    # models there are two shards.
    assert Counter(kinds.values()) == {
        "rule_build_split": 2,
        "rule_convert_checkpoint": 2,
        "rule_augment_images": 1,
        "rule_measure_loss": 2,
        "rule_extract_kept_latents": 2 * 2,
        # One table of the ResNet and four of the ViT.
        "rule_measure_latents": 1 + 4,
    }
    assert {job.node for job in jobs} == {"n1", "n2"}
    assert all(set(job.asked) == {"cpu", "mem", "node", "billing"} for job in jobs)
    assert {job.asked["cpu"] for job in jobs} == {"1"}
    assert all(300 < int(job.asked["mem"].removesuffix("M")) < 3000 for job in jobs)


@pytest.mark.nightly
def test_a_cancelled_job_and_a_dead_node(slurm, local, remote):
    local.make("--cores", "2", SHARDED)
    before = len(slurm.finished())
    process = start(remote, SHARDED)
    at_work = running(slurm, 3, remote.root)
    on_n1, on_n2 = (min(n for n in at_work if at_work[n] == node) for node in ("n1", "n2"))
    slurm.ask("scancel", on_n1)
    slurm.kill_node("n2")
    try:
        output, _ = process.communicate(timeout=900)
    finally:
        slurm.start_node("n2")
        slurm.wait_for_nodes()
    assert process.returncode == 0, output
    assert remote.digests("results/sharded") == local.digests("results/sharded")
    jobs = slurm.finished()[before:]
    assert {job.number for job in jobs if job.state == "CANCELLED"} == {on_n1}
    assert {job.number for job in jobs if job.state == "NODE_FAIL"} >= {on_n2}
    # What had ended stayed: each job ended well once.
    kinds = submitted(output)
    ended = Counter(kinds[job.number] for job in jobs if job.state == "COMPLETED")
    assert ended == {**BEFORE, SHARD: SHARDS, "rule_measure_latents": 1}


@pytest.mark.nightly
def test_a_killed_run_goes_on(slurm, local, remote):
    local.make("--cores", "2", SHARDED)
    earlier = submitted(remote.make(*BEFORE_SHARDS, *SLURM))

    def kill_at_work():
        process = start(remote, SHARDED, "--jobs", "2")
        at_work = running(slurm, 2, remote.root)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        code, output = remote.run(SHARDED, *SLURM)
        assert code != 0
        assert "It can be removed with the --unlock argument." in output
        remote.make("--unlock")
        return at_work

    left = kill_at_work()
    wait_for(lambda: not slurm.ask("squeue", "-h"), "the jobs that were left did not end")
    made = list((remote.root / "results/sharded/latents/vit").glob("*.safetensors"))
    assert len(made) == 2
    times = {file: file.stat().st_mtime_ns for file in made}

    left = kill_at_work()
    slurm.ask("scancel", *left)
    wait_for(lambda: not slurm.ask("squeue", "-h"), "the cancelled jobs did not end")
    remote.make(SHARDED, *SLURM)

    assert remote.digests("results/sharded") == local.digests("results/sharded")
    assert {file: file.stat().st_mtime_ns for file in made} == times
    # Slurm writes of a job some time after it has ended: those of other tests are left out.
    here = [job for job in slurm.finished() if job.folder == str(remote.root)]
    jobs = [job for job in here if job.number not in earlier]
    assert {job.number for job in jobs if job.state == "CANCELLED"} == left.keys()
    # Each shard once, and what is measured of all.
    assert states(jobs) == {"CANCELLED": 2, "COMPLETED": SHARDS + 1}


@pytest.mark.nightly
def test_a_job_over_its_memory_gets_more(slurm, local, remote):
    local.make("--cores", "2", LARGE)
    before = len(slurm.finished())
    output = remote.make(LARGE, *SLURM)
    assert remote.digests("results/large") == local.digests("results/large")
    jobs = slurm.finished()[before:]
    kinds = submitted(output)
    shard = [job for job in jobs if kinds[job.number] == SHARD]
    assert [job.state for job in shard] == ["FAILED", "COMPLETED"]
    first, second = (int(job.asked["mem"].removesuffix("M")) for job in shard)
    assert second == pytest.approx(2 * first, abs=1)
    assert states(jobs) == {"FAILED": 1, "COMPLETED": len(BEFORE) + 2}


@pytest.mark.nightly
def test_a_training_over_its_time_goes_on(slurm, local, remote):
    local.make("--cores", "1", TRAINED)
    before = len(slurm.finished())
    output = remote.make(TRAINED, *SLURM, "--set-resources", "train_model:runtime=1")
    folder = "results/long/training"
    assert remote.digests(folder) == local.digests(folder)
    jobs = slurm.finished()[before:]
    kinds = submitted(output)
    of_training = [job for job in jobs if kinds[job.number] == "rule_train_model"]
    # Slurm looks twice a minute.
    assert 2 <= len(of_training) <= 3
    assert {job.state for job in of_training[:-1]} == {"TIMEOUT"}
    assert of_training[-1].state == "COMPLETED"
    log = (remote.root / "logs/long/training/vit.log").read_text()
    (line,) = [line for line in log.splitlines() if line.startswith("vit: going on after epoch")]
    assert int(line.split()[5]) >= 10
