import re
from collections import Counter

import pytest

from tests.helpers.rules import rules
from tests.runs import warm
from tests.runs.copies import EVERYTHING, TINY, Workflow, edited
from vitscope.files.tables import read_metadata
from vitscope.jobs.job import Request, find_job
from vitscope.jobs.tables import find_table
from vitscope.planning.costs_of_job import network_cost_of_blocks
from vitscope.studies.loading import load_study

WHOLE = "results/whole/feature_variance/vit.parquet"
FOLDERS = """
pathvars:
  results: kept/results
  figures: kept/results/figures
  benchmarks: kept/times
"""


def planned(workflow: Workflow, *arguments: str) -> str:
    return warm.plan(workflow.root, workflow.root, *arguments)


def study_file(workflow: Workflow, name: str) -> str:
    return str(workflow.studies / f"{name}.yaml")


def counts(plan: str) -> dict[str, int]:
    """Return how many jobs of each kind there are, whatever they measure."""
    row = r"^(\w+)(?: \w+)? +([\d,]+) +[\d,]+ +[\d.]+ +[\d.]+ "
    found: Counter[str] = Counter()
    for rule, jobs in re.findall(row, plan, re.MULTILINE):
        found[rule] += int(jobs.replace(",", ""))
    return {rule: jobs for rule, jobs in found.items() if rule != "all"}


def jobs_in(plan: str) -> dict[str, int]:
    """Return how many jobs of each rule all studies of a plan take."""
    return dict(sum(map(Counter, map(counts, plan.split("Plan of ")[1:])), Counter()))


def dry_run(workflow: Workflow, *targets: str) -> dict[str, int]:
    """Return how many jobs of each kind a dry run has; several rules may do the same work."""
    found: Counter[str] = Counter()
    for rule, jobs in workflow.plan(*targets).items():
        if rule in rules() and (job := rules()[rule].job):
            found[job] += jobs
    return dict(found)


def test_the_jobs_are_those_of_a_dry_run(fresh: Workflow) -> None:
    assert jobs_in(planned(fresh, study_file(fresh, "whole"), WHOLE)) == dry_run(fresh, WHOLE)


def test_a_plane_is_measured_of_three_networks_by_one_job(fresh: Workflow) -> None:
    jobs = fresh.plan(f"figures/{EVERYTHING}/plane.pdf", default=EVERYTHING)
    assert (jobs["convert_checkpoint"], jobs["measure_line"]) == (3, 1)


@pytest.mark.nightly
def test_the_jobs_of_a_study_are_those_of_a_dry_run(fresh: Workflow) -> None:
    expected = dry_run(fresh, f"figures/{EVERYTHING}/all")
    assert jobs_in(planned(fresh, study_file(fresh, EVERYTHING))) == expected


@pytest.mark.nightly
def test_results_and_records_may_lie_anywhere(fresh: Workflow) -> None:
    usual = counts(planned(fresh, study_file(fresh, "whole")))
    for record in ("figures/whole/fig9.tsv", "whole/feature_variance/vit.tsv"):
        path = fresh.root / "kept" / "times" / record
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s\th:m:s\n7200\t2:00:00\n", encoding="utf-8")
    with edited(fresh.root / "config" / "config.yaml", lambda text: text + FOLDERS):
        plan = planned(fresh, study_file(fresh, "whole"))
    assert counts(plan) == usual
    hours = dict(re.findall(r"^(\w+) .* ([\d.]+) +earlier runs$", plan, re.MULTILINE))
    # An overview is drawn as figures are, and counted by their records.
    assert hours == dict.fromkeys(("draw_figure", "draw_overview", "merge"), "2.000")


def test_the_bytes_are_those_of_the_files(finished: Workflow) -> None:
    study = load_study(finished.studies / f"{TINY}.yaml")
    results = finished.root / "results" / TINY
    files = [
        (path, "extract_latents", {"model": path.parent.name, "part": path.stem})
        for path in results.glob("latents/*/*.safetensors")
    ]
    files += [
        (path, "build_split", {"dataset": path.parent.name, "split": path.stem})
        for path in results.glob("data/*/test.safetensors")
    ]
    assert len(files) == 2 * 2 + 1
    for path, job, names in files:
        network = None
        if "model" in names:
            blocks = results / "blocks" / f"{names['model']}.parquet"
            network = network_cost_of_blocks(
                find_table("blocks").read(blocks), read_metadata(blocks)
            )
        # Headers, and the labels of images, are beside what is counted.
        size = path.stat().st_size
        request = Request(study, names, network)
        written = find_job(job).takes_of(request).writes
        assert written(request) == pytest.approx(size, rel=0.1)


def test_examples_of_the_slurm_profile_are_accepted(fresh: Workflow) -> None:
    profile = fresh.root / "profiles" / "slurm" / "profile.yaml"
    example = re.compile(r"^( *)# ( *[\w-]+:( .*)?)$", re.MULTILINE)
    assert len(example.findall(profile.read_text(encoding="utf-8"))) == 10
    with edited(profile, lambda text: example.sub(r"\1\2", text)):
        plan = fresh.make("-n", "--workflow-profile", "profiles/slurm", WHOLE)
    assert "measure_pass" in plan


def test_bundled_models_are_trained_whichever_study_is_the_default(fresh):
    bundled = fresh.root / "resources/checkpoints/mini"
    models = [path for path in bundled.glob("*/") if path.name != "buildup"]
    planned = fresh.plan("train_mini", default="paper")
    assert planned["train_model"] == len(models) > 10
