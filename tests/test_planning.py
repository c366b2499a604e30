"""What jobs will cost: counted by hand for the default study, and told from records of runs."""

from pathlib import Path

import pytest

from vitscope.planning import PASSES as COUNTS
from vitscope.planning import Cost, Job, as_text, by_rule, calibrated, costs, earlier, written
from vitscope.studies import BUNDLED_STUDIES, Study, load_study


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
    record(tmp_path / "mini/landscape/vit/0.tsv", 40)
    record(tmp_path / "mini/landscape/vit/1.tsv", 20)
    assert earlier(job("measure_landscape", "landscape/vit/0.parquet"), tmp_path) == 40
    # A job that never ran is like its siblings; one of another folder is not.
    assert earlier(job("measure_landscape", "landscape/vit/2.parquet"), tmp_path) == 30
    assert earlier(job("measure_landscape", "landscape/pit/0.parquet"), tmp_path) is None
    # Any output of a job may have the name of its record.
    both = job("measure_spectrum", "fourier/vit/radial/1.parquet", "landscape/vit/1.parquet")
    assert earlier(both, tmp_path) == 20


def test_where_seconds_come_from(mini: Study, tmp_path: Path) -> None:
    record(tmp_path / "mini/fit/vit.tsv", 7)
    jobs = [
        job("measure_fit", "fit/vit.parquet"),
        job("predict", "predictions/vit/test.parquet"),
        job("tabulate", "tables/fit.parquet"),
        job("measure_hessian", "hessian/vit/end/0.parquet"),
    ]
    found = costs(mini, jobs, tmp_path, rate=lambda _, model: {"vit": 0.25}[model])
    assert [cost.source for cost in found] == ["earlier runs", "calibration", "defaults", "unknown"]
    assert found[0].seconds == 7
    assert found[1].seconds == pytest.approx(2000 * 0.25, rel=0.01)
    assert found[3].seconds is None


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
