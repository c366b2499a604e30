import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.rules import rules
from tests.helpers.studies import FROZEN
from tests.helpers.tiers import some_of
from tests.runs import warm
from tests.runs.copies import REPOSITORY
from vitscope.commands.plan import _planned_job_of_snakemake, plan_as_text
from vitscope.commands.workflow import Asked
from vitscope.jobs.job import Names, Request, find_job
from vitscope.jobs.videos import UNCOUNTED_FRAMES
from vitscope.measures.branches.measure import SHARE_OF_LESION
from vitscope.planning import costs_of_job, costs_of_study
from vitscope.planning.costs_of_study import seconds_of_earlier_run
from vitscope.settings.study import Study
from vitscope.studies.loading import load_study


@pytest.fixture(scope="module")
def frozen() -> Study:
    return load_study(FROZEN)


def planned(job: str, record: Path = Path("none.tsv"), **names: str) -> costs_of_study.Planned:
    return costs_of_study.Planned(job, "mini", names, record)


def known(study: Study, job: str, **names: str) -> Request:
    """Return a job as plans have it, with its network."""
    request = costs_of_study._request_of_planned_job(find_job(job), study, names)
    return replace(request, network=costs_of_job.count_network(study, request.names["model"]))


OF_VIT: Names = {"model": "vit", "part": "0", "snapshot": "end", "split": "test"}


@pytest.mark.parametrize(
    ("job", "names", "passes"),
    [
        ("extract_latents", {}, 256),
        ("predict", {}, 2000),
        # The whole, and without each of its units: at most the cut points.
        ("measure", {"measure": "lesion"}, 1000 * (1 + 25 * SHARE_OF_LESION)),
        # Nine frequencies, one draw, and clean images.
        ("measure", {"measure": "frequency_noise"}, 500 * 10),
        # Nine shares, the grids of 2, 4 and 8, five draws, and clean images.
        ("measure", {"measure": "occlusion"}, 2000 * 61),
        # Fifteen corruptions, two severities, and clean images.
        ("measure", {"measure": "robustness"}, 200 * 31),
        ("measure", {"measure": "fit"}, 1000),
        # Forward, and back from five cut points.
        ("measure", {"measure": "receptive_field"}, 50 * 6),
        # Eleven rows of eleven points, and four times the 25 points of claims.
        ("measure", {"measure": "landscape"}, (11 * 11 + 4 * 25) * 128),
        # Six batches of 16 images: 200 steps of Lanczos at most, or 20 from each probe.
        ("measure", {"measure": "hessian"}, 6 * 16 * 200 * 6),
        ("measure", {"measure": "hessian_density"}, 6 * 16 * 20 * 6),
        ("train_model", {"model": "resnet"}, 3 * 8 * 20000),
        # All that there are of what is generated.
        ("draw_video", {"video": "walk"}, 12),
        # Of the recipe of the build-up.
        ("train_model", {"buildup": "fig12a"}, 3 * 8 * 4000),
    ],
)
def test_forward_passes_are_those_of_the_settings(
    frozen: Study, job: str, names: Names, passes: float
) -> None:
    asked = names if job == "train_model" else {**OF_VIT, **names}
    assert costs_of_job.work(find_job(job), known(frozen, job, **asked)).passes == passes


def test_steps_uphill_take_two_passes(frozen: Study) -> None:
    study = replace(frozen, training=replace(frozen.training, sam=0.05))
    plain, sam = (
        costs_of_job.work(find_job("train_model"), known(each, "train_model", model="resnet"))
        for each in (frozen, study)
    )
    assert (sam.passes, sam.vectors) == (2 * plain.passes, plain.vectors + 1)


def test_frames_of_an_unknown_number_are_guessed(frozen: Study) -> None:
    walk = replace(frozen.videos["walk"], source={"path": "walk.mp4"})
    job = find_job("draw_video")
    for shown, passes in ((None, UNCOUNTED_FRAMES), (30, 30)):
        study = replace(frozen, videos={"walk": replace(walk, frames=shown)})
        request = costs_of_study._request_of_planned_job(job, study, {"video": "walk"})
        work = costs_of_job.work(job, request)
        assert (work.passes, work.batch, work.most) == (passes, 1, True)
        assert request.names == {"video": "walk", "model": "vit"}


def test_the_last_rows_of_a_landscape_are_what_is_left(frozen: Study) -> None:
    landscape = frozen.sections["landscape"] | {"points": 17, "rows_per_job": 9, "directions": 1}
    study = replace(frozen, sections={**frozen.sections, "landscape": landscape})
    for part, rows in (("0", 9), ("1", 8)):
        names = {**OF_VIT, "measure": "landscape", "part": part}
        work = costs_of_job.work(find_job("measure"), known(study, "measure", **names))
        assert work.passes == rows * 17 * 128


def written(request: Request, job: str) -> int | None:
    writes = find_job(job).takes_of(request).writes
    return writes(request) if writes else None


def test_bytes_are_those_of_the_settings(frozen: Study) -> None:
    # The stem and 24 residual branches, of 64 tokens of 48 channels.
    latents = known(frozen, "extract_latents", **OF_VIT)
    assert written(latents, "extract_latents") == 256 * 25 * 64 * 48 * 4
    split = Request(frozen, {"dataset": "shapes32", "split": "test"})
    assert written(split, "build_split") == 2000 * 3 * 32**2
    # Fifteen corruptions, and two severities of 200 images.
    corrupted = replace(split, names={"dataset": "shapes32", "part": "0"}, images=2000)
    assert written(corrupted, "corrupt_images") == 15 * 2 * 200 * 3 * 32**2
    assert written(Request(frozen, {"table": "fit"}), "tabulate") is None


def record(path: Path, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"s\th:m:s\n{seconds}\t0:00:01\n", encoding="utf-8")


def test_seconds_are_those_of_the_same_job(tmp_path: Path) -> None:
    record(tmp_path / "landscape/vit/end/0.tsv", 40)
    record(tmp_path / "landscape/vit/end/1.tsv", 20)
    # A job that never ran is like its siblings; one of another folder is not.
    for place, seconds in (("vit/end/0", 40), ("vit/end/2", 30), ("pit/end/0", None)):
        job = planned("measure", tmp_path / f"landscape/{place}.tsv")
        assert seconds_of_earlier_run(job) == seconds


NAMES = {
    name: name
    for text in [rule.text for rule in rules().values()]
    for name in re.findall(r"{(\w+)}", text)
}


@pytest.mark.parametrize("name", [name for name, rule in rules().items() if rule.part("benchmark")])
def test_records_are_looked_for_where_the_rule_writes_them(name: str) -> None:
    rule = rules()[name]
    place = re.findall(r"<(figures|results)>/", rule.part("output"))[0]
    first, *_ = rule.paths("output", **NAMES)
    (written_to,) = rule.paths("benchmark", **NAMES)
    names = {"format": "format"} if "{format}" in rule.part("output") else {}
    job = _planned_job_of_snakemake(Asked(None, {}), Path(place, first), "any", "mini", names)
    assert job.record == Path("benchmarks", written_to)


def test_where_seconds_come_from(frozen: Study) -> None:
    jobs = [
        planned("measure", **OF_VIT, measure="fit"),
        planned("predict", **OF_VIT),
        planned("tabulate", table="fit"),
        planned("measure", **OF_VIT, measure="hessian"),
        planned("measure", **OF_VIT, measure="cka"),
    ]
    ran = {"fit": 7.0}
    found = costs_of_study.costs_of_planned_jobs(
        frozen, jobs, lambda job: ran.get(job.names.get("measure")), lambda _, model: 0.25
    )
    kinds = ["measure fit", "predict", "tabulate", "measure hessian"]
    assert [cost.job for cost in found] == [*kinds, "measure cka"]
    sources = ["earlier runs", "calibration", "defaults", "calibration, at most", "defaults"]
    assert [cost.source for cost in found] == sources
    assert found[0].seconds == 7
    assert found[1].seconds == pytest.approx(2000 * 0.25, rel=0.01)


def test_a_plan_says_what_jobs_ask_for(frozen: Study) -> None:
    jobs = [planned("extract_latents", **OF_VIT), planned("tabulate", table="fit")]
    shard, table = costs_of_study.costs_of_planned_jobs(
        frozen, jobs, lambda job: None, lambda _, model: 0.25
    )
    asked = find_job("extract_latents"), known(frozen, "extract_latents", **OF_VIT)
    assert (shard.megabytes, shard.minutes) == (
        costs_of_job.megabytes(*asked),
        costs_of_job.minutes(*asked),
    )
    # It runs where Snakemake does.
    assert (table.megabytes, table.minutes) == (0, 0)
    both = costs_of_study.planned_costs_by_kind(
        [shard, replace(shard, megabytes=shard.megabytes + 1)]
    )
    assert [(row.megabytes, row.minutes) for row in both] == [(shard.megabytes + 1, shard.minutes)]


def test_another_machine_is_planned_for_by_its_rate(frozen: Study) -> None:
    job = planned("predict", **OF_VIT)
    (cost,) = costs_of_study.costs_of_planned_jobs(
        frozen, [job], lambda job: None, partial(costs_of_study.time_by_rate, 1e9)
    )
    operations = costs_of_job.count_network(frozen, "vit").operations
    assert cost.seconds == costs_of_job.START_WITH_TORCH + 2000 * operations / 1e9


def test_images_are_counted_where_a_study_does_not_say(frozen: Study, tmp_path: Path) -> None:
    """Of an official archive that was not downloaded, or a folder; images may also come later."""
    folder = tmp_path / "images" / "test"
    data = replace(
        frozen.data["shapes32"],
        source={"kind": "folder", "path": str(folder)},
        splits={"test": replace(frozen.data["shapes32"].splits["test"], images=None)},
    )
    study = replace(frozen, data={"shapes32": data})
    building = planned("build_split", dataset="shapes32", split="test")
    assert [*costs_of_study.say_what_planned_jobs_lack(study, [building])] == [
        f"There are no images yet of data.shapes32: {folder} is not there."
    ]
    (folder / "one").mkdir(parents=True)
    for name in ("a.png", "b.png", "c.txt"):
        (folder / "one" / name).touch()
    assert [*costs_of_study.say_what_planned_jobs_lack(study, [building])] == []
    assert costs_of_study._request_of_planned_job(find_job("predict"), study, OF_VIT).images == 2
    archive = {"shapes32": replace(data, source={"kind": "cifar100"})}
    assert (
        costs_of_study._request_of_planned_job(
            find_job("predict"), replace(study, data=archive), OF_VIT
        ).images
        == 10_000
    )


def test_what_is_not_known_is_unknown(frozen: Study) -> None:
    splits = frozen.data["shapes32"].splits
    data = replace(
        frozen.data["shapes32"], splits=splits | {"test": replace(splits["test"], images=None)}
    )
    study = replace(frozen, data={"shapes32": data})
    job = planned("predict", **OF_VIT)
    (cost,) = costs_of_study.costs_of_planned_jobs(
        study, [job], lambda job: None, lambda _, model: 0.25
    )
    assert (cost.seconds, cost.source) == (None, "unknown")


def test_costs_are_summed(frozen: Study) -> None:
    sums = costs_of_study.planned_costs_by_kind(
        [
            costs_of_study.Cost("tabulate", None, None, 1.0, "defaults"),
            costs_of_study.Cost("predict", 10, 5, 3600.0, "calibration"),
            costs_of_study.Cost("predict", 20, None, None, "unknown"),
        ]
    )
    assert [(row.job, row.jobs, row.passes, row.bytes) for row in sums] == [
        ("predict", 2, 30, 5),
        ("tabulate", 1, 0, 0),
    ]
    text = plan_as_text(frozen, sums, ["Latents are kept."])
    assert "calibration, unknown" in text
    assert "Latents are kept." in text
    assert "not in the sum" in text
    assert "build-up" not in text
    deciding = [costs_of_study.Cost("decide_step", None, None, 1, "defaults")]
    assert "A build-up is decided step by step" in plan_as_text(
        frozen, costs_of_study.planned_costs_by_kind(deciding), []
    )
    assert any(line.split()[:3] == ["all", "3", "30"] for line in text.splitlines())


@pytest.mark.parametrize(
    "study", some_of((FROZEN, "mini", "cifar100", "imagenet", "paper", "probing"), FROZEN)
)
def test_every_study_is_planned_whole(study: Path | str, tmp_path: Path) -> None:
    """Each job of a dry run is known to the plan, with what it takes; no network is timed."""
    printed = warm.plan(tmp_path, REPOSITORY, str(study), "--rate", "1e12")
    assert printed.startswith(f"Plan of {Path(study).stem}: ")
    jobs = {line.split()[0] for line in printed.splitlines()[2:] if line[:1].islower()}
    assert {"draw_figure", "count_claims", "record_run"} <= jobs
