import numpy as np
import pandas as pd
import pytest

from tests.runs.copies import TINY, Workflow
from vitscope.claims.intervals import without_resamples
from vitscope.data.split import Split
from vitscope.files.tensors import TensorFile

TABLES = f"results/{TINY}/tables"
CSV = [f"{TABLES}/{name}.csv" for name in ("feature_variance", "claims")]
POINTS = [f"figures/{TINY}/fig9.csv", "figures/landscape.csv"]
LATENTS = f"results/{TINY}/latents/vit.npz"


@pytest.fixture(scope="module")
def exported(finished: Workflow) -> Workflow:
    finished.make("--cores", "1", *CSV, *POINTS, LATENTS, default=TINY)
    return finished


def test_tables_figures_and_claims_are_written_for_others(exported: Workflow) -> None:
    for path in CSV:
        written = pd.read_parquet(exported.root / path.replace(".csv", ".parquet"))
        table = without_resamples(written)
        back = pd.read_csv(exported.root / path).astype(table.dtypes)
        pd.testing.assert_frame_equal(back, table, check_exact=True)
    points = pd.read_csv(exported.root / f"figures/{TINY}/fig9.csv")
    assert set(points["label"]) == {"ResNet", "ViT"}
    assert set(points["published"].dropna()) == {"ViT"}
    variance = pd.read_parquet(exported.root / f"{TABLES}/feature_variance.parquet")["variance"]
    measured = points.loc[points["published"].isna(), "variance"]
    assert sorted(measured) == sorted(variance)
    latex = (exported.root / f"{TABLES}/claims.tex").read_text(encoding="utf-8")
    assert r"\caption{fig9}" in latex
    assert "MSAs reduce the feature map variance & " in latex


def test_latents_are_written_for_others(exported: Workflow) -> None:
    folder = exported.root / f"results/{TINY}/latents"
    found = np.load(exported.root / LATENTS)
    shards = [TensorFile(file) for file in sorted((folder / "vit").glob("*.safetensors"))]
    assert len(shards) == 2
    assert found["name"].tolist() == shards[0].names
    for name in shards[0].names:
        expected = np.concatenate([shard.array(name) for shard in shards])
        np.testing.assert_array_equal(found[f"maps/{name}"], expected)
    split = Split(exported.root / f"results/{TINY}/data/shapes32/test.safetensors")
    assert found["labels"].tolist() == split.labels[found["images"]].tolist()


def test_a_build_up_has_its_points_and_a_video_on_demand(fresh: Workflow) -> None:
    table, video = "results/mini/tables/buildup_fig12a.csv", "figures/mini/fig12a.webp"
    jobs = fresh.plan("figures/fig12a.csv", table, video)
    assert (jobs["export_buildup"], jobs["export_table"], jobs["animate_buildup"]) == (1, 1, 1)
