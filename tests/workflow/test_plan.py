"""What jobs will cost: counted by hand for the default study, and told from records of runs."""

import re
from functools import partial
from pathlib import Path

import pytest

from scripts.plan import earlier, records_of
from tests.helpers.rules import ROOT, rules
from vitscope.settings.loading import BUNDLED_STUDIES, load_study
from vitscope.settings.study import Study
from vitscope.workflow.plan import PASSES as COUNTS
from vitscope.workflow.plan import (
    SECONDS_PER_GB,
    Cost,
    Job,
    as_text,
    by_rule,
    calibrated,
    costs,
    written,
)


@pytest.fixture(scope="module")
def mini() -> Study:
    return load_study(BUNDLED_STUDIES / "mini.yaml")


def job(rule: str, *outputs: str) -> Job:
    return Job(rule, tuple(Path("mini", output) for output in outputs))


@pytest.mark.parametrize(
    ("rule", "output", "passes"),
    [
        ("extract_latents", "latents/vit/0.safetensors", 256),
        ("list_blocks", "blocks/vit.parquet", 1),
        ("predict", "predictions/vit/test.parquet", 2000),
        ("predict", "predictions/vit/conflict.parquet", 2000),
        # Twelve blocks of an MSA and an MLP each, and the whole.
        ("measure_lesions", "lesion/vit.parquet", 1000 * 25),
        # Nine frequencies, three draws, and clean images.
        ("measure_frequency_noise", "frequency_noise/vit.parquet", 500 * 28),
        # Fifteen corruptions, five severities, and clean images.
        ("measure_robustness", "robustness/vit/0.parquet", 200 * 76),
        ("measure_fit", "fit/vit.parquet", 2000),
        # Nine rows of seventeen points, then the eight that are left.
        ("measure_landscape", "landscape/vit/0.parquet", 9 * 17 * 256),
        ("measure_landscape", "landscape/vit/1.parquet", 8 * 17 * 256),
        ("train_model", "training/resnet/end.safetensors", 3 * 8 * 20000),
    ],
)
def test_forward_passes_are_those_of_the_settings(
    mini: Study, rule: str, output: str, passes: int
) -> None:
    assert COUNTS[rule](mini, job(rule, output)) == passes


def test_bytes_are_those_of_the_settings(mini: Study) -> None:
    latents = job("extract_latents", "latents/vit/0.safetensors")
    # The stem and 24 residual branches, of 64 tokens of 48 channels.
    assert written(mini, latents) == 256 * 25 * 64 * 48 * 4
    assert written(mini, job("build_split", "data/shapes32/test.safetensors")) == 2000 * 3 * 32**2
    assert written(mini, job("tabulate", "tables/fit.parquet")) is None


def record(path: Path, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"s\th:m:s\n{seconds}\t0:00:01\n", encoding="utf-8")


def test_seconds_are_those_of_the_same_job(tmp_path: Path) -> None:
    known = partial(earlier, tmp_path, "mini")
    record(tmp_path / "mini/landscape/vit/0.tsv", 40)
    record(tmp_path / "mini/landscape/vit/1.tsv", 20)
    assert known(job("measure_landscape", "landscape/vit/0.parquet")) == 40
    # A job that never ran is like its siblings; one of another folder is not.
    assert known(job("measure_landscape", "landscape/vit/2.parquet")) == 30
    assert known(job("measure_landscape", "landscape/pit/0.parquet")) is None
    # Any output of a job may have the name of its record.
    both = job("measure_spectrum", "fourier/vit/radial/1.parquet", "landscape/vit/1.parquet")
    assert known(both) == 20


def test_seconds_of_figures_and_of_training_are_their_own(tmp_path: Path) -> None:
    known = partial(earlier, tmp_path, "mini")
    default = Job("draw_default_figure", (Path("fig9.pdf"), Path("fig9.png")))
    named = Job("draw_figure", (Path("mini/fig9.pdf"), Path("mini/fig9.png")))
    training = job("train_model", "training/vit/init.safetensors", "training/vit/end.safetensors")
    # No sibling of a figure, though it lies where the figure would have a record beside itself.
    record(tmp_path / "mini/run.tsv", 0.2)
    assert [known(each) for each in (default, named, training)] == [None] * 3
    record(tmp_path / "mini/figures/default_fig9.tsv", 3)
    record(tmp_path / "mini/figures/fig9.tsv", 4)
    record(tmp_path / "mini/training/vit.tsv", 700)
    assert [known(each) for each in (default, named, training)] == [3, 4, 700]


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
    assert written_to in records_of(Job(name, tuple(outputs)), "mini")


def test_no_record_is_that_of_another_rule() -> None:
    places = {}
    for name, rule in rules().items():
        if rule.part("benchmark"):
            (places[name],) = rule.paths("benchmark", **NAMES)
    for name, place in places.items():
        outputs = tuple(rules()[name].paths("output", **NAMES))
        others = {places[other] for other in places if rules()[other].parent != name}
        assert not (others - {place}) & set(records_of(Job(name, outputs), "mini")), name


def test_where_seconds_come_from(mini: Study, tmp_path: Path) -> None:
    jobs = [
        job("measure_fit", "fit/vit.parquet"),
        job("predict", "predictions/vit/test.parquet"),
        job("tabulate", "tables/fit.parquet"),
        job("measure_hessian", "hessian/vit/end/0.parquet"),
    ]
    known = {"measure_fit": 7.0}
    found = costs(
        mini, jobs, lambda job: known.get(job.rule), lambda _, model: {"vit": 0.25}[model]
    )
    assert [cost.source for cost in found] == ["earlier runs", "calibration", "defaults", "unknown"]
    assert found[0].seconds == 7
    assert found[1].seconds == pytest.approx(2000 * 0.25, rel=0.01)
    assert found[3].seconds is None


def test_seconds_per_gb_are_those_that_were_measured() -> None:
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    names = {
        "variance": "measure_variance",
        "half-diagonals": "measure_diagonal",
        "whole spectrum": "measure_spectrum",
        "CKA": "measure_cka",
    }
    rows = re.findall(r"^\| ([\w -]+): .*, ([\d.]+) s \|$", text, re.MULTILINE)
    measured = {names[row]: float(seconds) for row, seconds in rows if row in names}
    assert measured.keys() == SECONDS_PER_GB.keys()
    (shard,) = map(float, re.findall(r"the most latents at once \| ([\d.]+) GB", text))
    for rule, seconds in measured.items():
        assert SECONDS_PER_GB[rule] == pytest.approx(seconds / shard, abs=0.1)
    assert sum(SECONDS_PER_GB.values()) == pytest.approx(3.0, abs=0.05)


def test_a_network_is_timed(mini: Study) -> None:
    assert 0 < calibrated(mini, "vit") < 10


def test_costs_are_summed(mini: Study) -> None:
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
    text = as_text(mini, sums, 3)
    assert "calibration, unknown" in text
    assert "at most 3 GB" in text
    assert "not in the sum" in text
    assert any(line.split()[:3] == ["all", "3", "30"] for line in text.splitlines())
