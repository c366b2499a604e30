"""What jobs will cost: counted by hand for the frozen study, and read from records of runs."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.rules import ROOT, rules
from tests.helpers.studies import FROZEN
from vitscope.commands.plan import earlier, records_of
from vitscope.measures import registry
from vitscope.measures.lesion.measure import SHARE_OF_LESION
from vitscope.settings.loading import load_study
from vitscope.settings.study import Study
from vitscope.workflow import costs
from vitscope.workflow.plan import (
    OUTPUT_NAMES,
    Cost,
    Planned,
    as_text,
    by_rule,
    calibrated,
    costs_of,
    written,
)


@pytest.fixture(scope="module")
def frozen() -> Study:
    return load_study(FROZEN)


def planned(rule: str, *outputs: str) -> Planned:
    return Planned(rule, tuple(Path("mini", output) for output in outputs))


def counted(study: Study, rule: str, output: str) -> costs.Job:
    """Return a job as plans have it, with its network."""
    job = planned(rule, output).job(study)
    return replace(job, network=costs.counted(study, job.names["model"]))


@pytest.mark.parametrize(
    ("rule", "output", "passes"),
    [
        ("extract_latents", "latents/vit/0.safetensors", 256),
        ("predict", "predictions/vit/test.parquet", 2000),
        ("predict", "predictions/vit/conflict.parquet", 2000),
        # The whole, and without each of its units: at most the cut points.
        ("measure_model", "lesion/vit.parquet", 1000 * (1 + 25 * SHARE_OF_LESION)),
        # Nine frequencies, one draw, and clean images.
        ("measure_model", "frequency_noise/vit.parquet", 500 * 10),
        # Fifteen corruptions, three severities, and clean images.
        ("measure_model_part", "robustness/vit/0.parquet", 200 * 31),
        ("measure_model", "fit/vit.parquet", 1000),
        # Forward, and back from five cut points.
        ("measure_model", "receptive_field/vit.parquet", 50 * 6),
        # Eleven rows of eleven points.
        ("measure_loss", "landscape/vit/end/0.parquet", 11 * 11 * 128),
        # Six batches of 16 images: 200 steps of Lanczos at most, or 20 from each probe.
        ("measure_loss", "hessian/vit/end/0.parquet", 6 * 16 * 200 * 6),
        ("measure_loss", "hessian_density/vit/end/0.parquet", 6 * 16 * 20 * 6),
        ("train_model", "training/resnet/end.safetensors", 3 * 8 * 20000),
        # All that there are of what is generated.
        ("draw_video", "walk.webp", 12),
        # Of the recipe of the build-up, and all test images.
        ("train_step", "buildups/fig12a/trained/step_2/init.safetensors", 3 * 8 * 4000),
        ("measure_step", "buildups/fig12a/bundled/step_2/result.parquet", 2000),
    ],
)
def test_forward_passes_are_those_of_the_settings(
    frozen: Study, rule: str, output: str, passes: float
) -> None:
    work = costs.work(counted(frozen, rule, output))
    assert work is not None
    assert work.passes == passes


def test_frames_that_nobody_has_counted_are_guessed(frozen: Study) -> None:
    walk = replace(frozen.videos["walk"], source={"path": "walk.mp4"})
    for shown, passes in ((None, costs.UNCOUNTED_FRAMES), (30, 30)):
        study = replace(frozen, videos={"walk": replace(walk, frames=shown)})
        # Of the default study: in no folder of its name.
        job = Planned("draw_default_video", (Path("walk.gif"),)).job(study)
        work = costs.work(job)
        assert work is not None
        assert (work.passes, work.batch, work.most) == (passes, 1, True)
        assert job.names == {"video": "walk", "model": "vit"}


def test_the_last_rows_of_a_landscape_are_what_is_left(frozen: Study) -> None:
    landscape = frozen.sections["landscape"] | {"points": 17, "rows_per_job": 9}
    study = replace(frozen, sections={**frozen.sections, "landscape": landscape})
    for part, rows in (("0", 9), ("1", 8)):
        work = costs.work(counted(study, "measure_loss", f"landscape/vit/end/{part}.parquet"))
        assert work is not None
        assert work.passes == rows * 17 * 128


def test_bytes_are_those_of_the_settings(frozen: Study) -> None:
    # The stem and 24 residual branches, of 64 tokens of 48 channels.
    latents = counted(frozen, "extract_latents", "latents/vit/0.safetensors")
    assert written(latents) == 256 * 25 * 64 * 48 * 4
    split = planned("build_split", "data/shapes32/test.safetensors").job(frozen)
    assert written(split) == 2000 * 3 * 32**2
    assert written(planned("tabulate", "tables/fit.parquet").job(frozen)) is None


def record(path: Path, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"s\th:m:s\n{seconds}\t0:00:01\n", encoding="utf-8")


def test_seconds_are_those_of_the_same_job(tmp_path: Path) -> None:
    known = partial(earlier, tmp_path, "mini")
    record(tmp_path / "mini/landscape/vit/end/0.tsv", 40)
    record(tmp_path / "mini/landscape/vit/end/1.tsv", 20)
    assert known(planned("measure_loss", "landscape/vit/end/0.parquet")) == 40
    # A job that never ran is like its siblings; one of another folder is not.
    assert known(planned("measure_loss", "landscape/vit/end/2.parquet")) == 30
    assert known(planned("measure_loss", "landscape/pit/end/0.parquet")) is None
    # Any output of a job may have the name of its record.
    both = planned("any", "fourier/vit/1.parquet", "landscape/vit/end/1.parquet")
    assert known(both) == 20


def test_seconds_of_figures_and_of_training_are_their_own(tmp_path: Path) -> None:
    known = partial(earlier, tmp_path, "mini")
    default = Planned("draw_default_figure", (Path("fig9.pdf"), Path("fig9.png")))
    named = Planned("draw_figure", (Path("mini/fig9.pdf"), Path("mini/fig9.png")))
    training = planned(
        "train_model", "training/vit/init.safetensors", "training/vit/end.safetensors"
    )
    # No sibling of a figure, though it lies where the figure would have a record beside itself.
    record(tmp_path / "mini/run.tsv", 0.2)
    assert [known(each) for each in (default, named, training)] == [None] * 3
    record(tmp_path / "mini/figures/default_fig9.tsv", 3)
    record(tmp_path / "mini/figures/fig9.tsv", 4)
    record(tmp_path / "mini/training/vit.tsv", 700)
    assert [known(each) for each in (default, named, training)] == [3, 4, 700]


def test_steps_of_a_build_up_take_as_long_as_others_of_it(tmp_path: Path) -> None:
    known = partial(earlier, tmp_path, "mini")
    record(tmp_path / "mini/buildups/grown/trained/step_0.tsv", 100)
    first = "mini/buildups/grown/trained/step_{}/init.safetensors"
    steps = [Planned("train_step", (Path(first.format(step)),)) for step in (0, 1)]
    assert [known(each) for each in steps] == [100, 100]
    record(tmp_path / "mini/buildups/grown.tsv", 3)
    record(tmp_path / "mini/buildups/default_grown.tsv", 4)
    named = Planned("draw_buildup", (Path("mini/grown.pdf"),))
    default = Planned("draw_default_buildup", (Path("grown.pdf"),))
    assert [known(each) for each in (named, default)] == [3, 4]


NAMES = {
    name: name
    for text in [rule.text for rule in rules().values()]
    for name in re.findall(r"{(\w+)}", text)
} | {"DEFAULT": "mini", "study": "mini"}


@pytest.mark.parametrize("name", [name for name, rule in rules().items() if rule.part("benchmark")])
def test_records_are_looked_for_where_the_rule_writes_them(name: str) -> None:
    rule = rules()[name]
    outputs = rule.paths("output", **NAMES)
    (written_to,) = rule.paths("benchmark", **NAMES)
    assert outputs
    assert written_to in records_of(Planned(name, tuple(outputs)), "mini")


def test_no_record_is_that_of_another_rule() -> None:
    places = {}
    for name, rule in rules().items():
        if rule.part("benchmark"):
            (places[name],) = rule.paths("benchmark", **NAMES)
    for name, place in places.items():
        outputs = tuple(rules()[name].paths("output", **NAMES))
        others = {places[other] for other in places if rules()[other].parent != name}
        assert not (others - {place}) & set(records_of(Planned(name, outputs), "mini")), name


def test_outputs_name_what_their_rules_say() -> None:
    for name, place in OUTPUT_NAMES.items():
        first, *_ = rules()[name].paths("output", **NAMES)
        parts = first.with_suffix("").parts
        # What lies in no folder of a study is of the default one.
        parts = parts[1:] or parts
        named = ["" if part not in NAMES else part for part in parts]
        # A pair is no model of the study; and what names nothing may be left out at the end.
        expected = ["model" if each == "pair" else each for each in place]
        assert named[: len(place)] == expected, name
        assert not any(named[len(place) :]), name


def test_where_seconds_come_from(frozen: Study) -> None:
    jobs = [
        planned("measure_model", "fit/vit.parquet"),
        planned("predict", "predictions/vit/test.parquet"),
        planned("tabulate", "tables/fit.parquet"),
        planned("measure_loss", "hessian/vit/end/0.parquet"),
        planned("measure_latents", "cka/vit/0.parquet"),
    ]
    known = {"measure_model": 7.0}
    found = costs_of(frozen, jobs, lambda job: known.get(job.rule), lambda _, model: 0.25)
    sources = ["earlier runs", "calibration", "defaults", "calibration, at most", "defaults"]
    assert [cost.source for cost in found] == sources
    assert found[0].seconds == 7
    assert found[1].seconds == pytest.approx(2000 * 0.25, rel=0.01)


def test_what_nobody_knows_is_unknown(frozen: Study) -> None:
    splits = frozen.data["shapes32"].splits
    data = replace(
        frozen.data["shapes32"], splits=splits | {"test": replace(splits["test"], images=None)}
    )
    study = replace(frozen, data={"shapes32": data})
    job = planned("predict", "predictions/vit/test.parquet")
    (cost,) = costs_of(study, [job], lambda job: None, lambda _, model: 0.25)
    assert (cost.seconds, cost.source) == (None, "unknown")


def test_seconds_per_gb_are_those_that_were_measured() -> None:
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    rows = {
        "feature_variance": ("variance",),
        # Two jobs when they were measured.
        "fourier": ("half-diagonals", "whole spectrum"),
        "cka": ("CKA",),
    }
    found = re.findall(r"^\| ([\w -]+): .*, ([\d.]+) s \|$", text, re.MULTILINE)
    measured = {row: float(seconds) for row, seconds in found}
    declared = {name: registry.declared(name) for name in registry.names()}
    (shard,) = map(float, re.findall(r"the most latents at once \| ([\d.]+) GB", text))
    for name, of_measure in rows.items():
        seconds = sum(measured[row] for row in of_measure)
        assert declared[name].seconds_per_gb == pytest.approx(seconds / shard, abs=0.15)


def test_a_network_is_timed(frozen: Study) -> None:
    assert 0 < calibrated(frozen, "vit") < 10


def test_costs_are_summed(frozen: Study) -> None:
    sums = by_rule(
        [
            Cost("tabulate", None, None, 1.0, "defaults"),
            Cost("predict", 10, 5, 3600.0, "calibration"),
            Cost("predict", 20, None, None, "unknown"),
        ]
    )
    assert [(row.rule, row.jobs, row.passes, row.bytes) for row in sums] == [
        ("predict", 2, 30, 5),
        ("tabulate", 1, 0, 0),
    ]
    text = as_text(frozen, sums, 3)
    assert "calibration, unknown" in text
    assert "at most 3 GB" in text
    assert "not in the sum" in text
    assert "build-up" not in text
    deciding = [Cost("decide_step", None, None, 1, "defaults")]
    assert "A build-up is decided step by step" in as_text(frozen, by_rule(deciding), None)
    assert any(line.split()[:3] == ["all", "3", "30"] for line in text.splitlines())
