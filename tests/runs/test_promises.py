"""The same bytes from every run, and the same values from every number of shards."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.runs.copies import TINY, Workflow, copy_workflow
from vitscope.workflow.tables import find_table

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> Workflow:
    """A second copy, in which only `tiny` was made, on one core, beside the default study."""
    workflow = copy_workflow(tmp_path_factory.mktemp("alone") / "copy", studies)
    workflow.make("--cores", "1", *TINY)
    return workflow


def test_two_clean_runs_on_one_core_and_on_two_give_the_same_bytes(alone, finished):
    made = alone.digests("results/tiny", "figures/tiny")
    suffixes = {Path(path).suffix for path in made}
    assert suffixes >= {".pdf", ".svg", ".png", ".parquet", ".safetensors", ".yaml"}
    assert made == finished.digests("results/tiny", "figures/tiny")


def test_the_figure_of_the_default_study_is_the_same_under_its_short_name(finished):
    short = finished.digests("figures")
    for suffix in ("pdf", "svg", "png"):
        assert short[f"figures/fig9.{suffix}"] == short[f"figures/tiny/fig9.{suffix}"]


def test_a_study_outside_the_repository_leaves_all_others_alone(alone):
    assert [path.name for path in (alone.root / "results").iterdir()] == ["tiny"]
    assert [path.name for path in (alone.root / "figures").iterdir()] == ["tiny"]
    record = yaml.safe_load((alone.root / "results/tiny/run.yaml").read_text(encoding="utf-8"))
    assert record["study"]["name"] == "tiny"


def test_one_shard_and_seven_give_the_same_values(finished):
    results = finished.root / "results"
    parts = sorted((results / "sharded/feature_variance/vit").glob("*.parquet"))
    assert len(parts) == 7
    seven = [find_table("variance_per_image").read(part) for part in parts]
    one = find_table("variance_per_image").read(results / "tiny/feature_variance/vit/0.parquet")
    by_image = one.set_index(["image", "index"])["variance"]
    for part in seven:
        found = part.set_index(["image", "index"])["variance"]
        np.testing.assert_allclose(found, by_image.loc[found.index], rtol=1e-6)
    assert sum(map(len, seven)) == len(one)

    merged = [
        find_table("feature_variance").read(results / s / "feature_variance/vit.parquet")
        for s in STUDIES
    ]
    for column in ("variance", "ci_low", "ci_high"):
        np.testing.assert_allclose(*(table[column] for table in merged), rtol=1e-6)
    assert merged[0].drop(columns=VALUES).equals(merged[1].drop(columns=VALUES))


STUDIES = ("tiny", "sharded")
VALUES = ["variance", "ci_low", "ci_high"]


def test_latents_live_on_only_where_the_study_keeps_them(finished):
    latents = {path.name for path in finished.root.glob("results/*/latents/*/*")}
    assert latents == {"0.safetensors"}
    assert not (finished.root / "results/sharded/latents").exists()
