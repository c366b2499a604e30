import os
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.helpers.web import running_site, whole
from tests.runs.copies import SOME, TINY, Workflow, copy_workflow

pytestmark = pytest.mark.nightly

# Where each stage writes, in the order of the run: a download, a conversion, latents, a table, and
# a figure.
STAGES = ("downloads", "checkpoints", "latents/vit", "feature_variance", "tables")


def test_a_disk_that_is_full_at_every_stage(
    tmp_path: Path, made: Workflow, weights: dict[str, Path], mount
):
    """Each stage fails in one sentence and leaves nothing; with room, the run goes on."""
    studies = tmp_path / "studies"
    studies.mkdir()
    workflow = copy_workflow(tmp_path / "copy", studies)
    results = workflow.root / "results" / TINY
    folders = [*(results / stage for stage in STAGES), workflow.root / "figures" / TINY]
    with running_site() as site:
        settings = yaml.safe_load((made.studies / f"{TINY}.yaml").read_text())
        url = site.at("/vit.pth.tar", whole(weights["vit"].read_bytes()))
        settings["models"]["vit"]["checkpoint"] = {"url": url}
        (studies / f"{TINY}.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        for folder in folders:
            mount(folder, "-t", "tmpfs", "-o", "size=4k", "tmpfs")
            # The folder itself takes a page of it, and one byte the last.
            (folder / "full").write_bytes(b"x")
        for folder in folders:
            code, output = workflow.run("--cores", "2", "--keep-going", *SOME, default=TINY)
            assert code != 0
            assert "Traceback" not in output
            name = folder.relative_to(workflow.root)
            assert f"annot write {name}/" in output
            assert "(No space left on device)" in output
            assert [path.name for path in folder.iterdir()] == ["full"]
            mount(folder, "-o", "remount,size=64m")
            (folder / "full").unlink()
        workflow.make("--cores", "2", *SOME, default=TINY)
    tables = workflow.digests(f"results/{TINY}/tables")
    assert tables
    assert tables.items() <= made.digests(f"results/{TINY}/tables").items()


def test_results_that_may_not_be_written(victim: Workflow, mount) -> None:
    """What is there can be planned with and drawn; what has to be made ends in one sentence."""
    results = victim.root / "results"
    mount(results, "--bind", str(results))
    mount(results, "-o", "remount,ro,bind")
    before = victim.digests("results", "figures")
    assert victim.plan(*SOME, default=TINY) == {}
    code, output = victim.run(*SOME, "--forcerun", "tabulate", default=TINY)
    assert code != 0
    assert victim.digests("results", "figures") == before
    assert "Traceback" not in output
    # What is there already Snakemake knows to be protected; what is new it cannot begin.
    assert "Write-protected output files for rule" in output
    code, output = victim.run(f"results/{TINY}/tables/cka.csv", default=TINY)
    assert code != 0
    assert "Read-only file system" in output
    victim.make("figures/landscape.pdf", "--forcerun", "draw_figure", default=TINY)
    assert victim.digests("results", "figures") == before


def test_a_disk_that_is_full_before_the_first_job(tmp_path: Path, studies: Path, mount) -> None:
    workflow = copy_workflow(tmp_path / "copy", studies)
    records = workflow.root / ".snakemake"
    mount(records, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
    full = os.open(records / "full", os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(full, bytes(4096))
    os.close(full)
    code, output = workflow.run(f"results/{TINY}/blocks/vit.parquet", default=TINY)
    assert code != 0
    assert "No space left on device" in output
    (records / "full").unlink()
    workflow.make(f"results/{TINY}/blocks/vit.parquet", default=TINY)
