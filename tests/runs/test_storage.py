"""Results in a storage of Snakemake's: by its plugin of file systems, which needs rsync."""

import subprocess
from functools import partial
from pathlib import Path
from shutil import which

import pytest

from tests.runs.copies import EVERYTHING, TINY, Workflow, copy_workflow
from tests.runs.test_buildups import written
from tests.runs.test_failures import web_page, with_models


def in_storage(folder: Path) -> tuple[str, ...]:
    return "--default-storage-provider", "fs", "--default-storage-prefix", str(folder)


def test_the_jobs_are_the_same(fresh: Workflow, tmp_path: Path) -> None:
    planned = partial(fresh.plan, default=EVERYTHING)
    assert planned("all", *in_storage(tmp_path)) == planned("all")


@pytest.mark.others
def test_without_rsync_no_job_starts(fresh: Workflow, tmp_path: Path) -> None:
    place = tmp_path / "programs"
    place.mkdir()
    for program in ("bash", "which"):
        (place / program).symlink_to(which(program))
    target, stored = f"results/{TINY}/checkpoints/vit.safetensors", in_storage(tmp_path / "stored")
    extra = {"PATH": str(place)}
    process = fresh.start(target, "--cores", "1", *stored, extra=extra, stdout=subprocess.PIPE)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 1
    assert output.splitlines()[-1] == (
        "vitscope: --default-storage-provider fs copies by rsync, which is not on the PATH: "
        "install it, or leave the storage out."
    )
    assert not (tmp_path / "stored").exists()


@pytest.mark.others
def test_the_bytes_are_the_same(made: Workflow, tmp_path: Path) -> None:
    workflow = copy_workflow(tmp_path / "copy", made.studies)
    # The last is of a study whose passes leave folders.
    of_vit = (f"results/{study}/feature_variance/vit.parquet" for study in (TINY, "whole"))
    targets = (f"figures/{TINY}/fig9.pdf", *of_vit)
    workflow.make("--cores", "2", *targets, *in_storage(tmp_path / "stored"))
    for target in targets:
        assert (tmp_path / "stored" / target).read_bytes() == (made.root / target).read_bytes()
    assert not (workflow.root / "results").exists()
    assert workflow.plan(*targets, *in_storage(tmp_path / "stored")) == {}


@pytest.mark.others
def test_a_failure_is_told(fresh: Workflow, tmp_path: Path) -> None:
    page = web_page(tmp_path)
    with_models(tmp_path, {"page": {"path": str(page)}})
    workflow, target = Workflow(fresh.root, tmp_path), "results/broken/checkpoints/page.safetensors"
    code, output = workflow.run(target, *in_storage(tmp_path / "stored"))
    assert code != 0
    assert output.splitlines()[-1].startswith(f"vitscope: page: {page} is a web page")


@pytest.mark.nightly
def test_a_build_up_reads_what_was_decided(tmp_path: Path) -> None:
    """Which is in the storage alone when the next step is planned."""
    written(tmp_path)
    workflow = copy_workflow(tmp_path / "copy", tmp_path)
    workflow.make("--cores", "2", "figures/own/grown.png", *in_storage(tmp_path / "stored"))
    assert (tmp_path / "stored" / "results/own/buildups/grown/model.yaml").exists()
