from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.studies import mini
from tests.runs.copies import Workflow, with_study
from vitscope.jobs.tables import find_table

MOMENTS = {"vit@init": 0, "vit@warmup": 2, "vit": 16}


@pytest.fixture
def workflow(tmp_path: Path) -> Workflow:
    """A study of the bundled ViT, whose snapshots are bundled, too, on some images."""
    study = mini() | {"videos": {}, "buildups": {}}
    study["models"] = {"vit": study["models"]["vit"]}
    study["analysis"] |= {"images": 16}
    figure = {"kind": "token_similarity", "models": ["vit"], "by_epoch": True}
    return with_study(tmp_path, "late", study | {"figures": {"similarity": figure}})


def test_a_figure_by_epoch_measures_the_snapshots(workflow: Workflow) -> None:
    planned = workflow.plan("figures/late/similarity.pdf", default="late")
    assert planned["convert_checkpoint"] == planned["measure_latents"] == len(MOMENTS)
    assert planned["draw_figure"] == 1


@pytest.mark.nightly
def test_a_figure_by_epoch_is_drawn_from_their_tables(workflow: Workflow) -> None:
    figures = (f"figures/late/similarity.{end}" for end in ("pdf", "csv"))
    workflow.make(*figures, "results/late/tables/claims.md", default="late")
    drawn = pd.read_csv(workflow.root / "figures/late/similarity.csv")
    folder = workflow.root / "results/late/token_similarity"
    for model, epoch in MOMENTS.items():
        label = "ViT" if model == "vit" else f"ViT, epoch {epoch}"
        shown = drawn.loc[drawn["label"] == label, "similarity"]
        table = find_table("token_similarity").read(folder / f"{model}.parquet")
        assert shown.tolist() == pytest.approx(table["similarity"].tolist(), rel=1e-12, abs=0)
    # No claim is counted on it.
    claims = workflow.root / "results/late/tables/claims.md"
    assert "msa" not in claims.read_text(encoding="utf-8").lower()
