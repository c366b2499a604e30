from pathlib import Path

import pytest

from tests.helpers.studies import mini_with
from vitscope.measures import registry
from vitscope.studies.loading import load_study


@pytest.mark.parametrize(
    ("images", "shard_size", "batch", "expected"),
    [(1000, 250, 50, 50), (250, 250, 64, 64), (1000, 128, 64, 64), (30, 250, 64, 30)],
)
def test_batches_that_no_shard_cuts(
    tmp_path: Path, images: int, shard_size: int, batch: int, expected: int
) -> None:
    analysis = {"images": images, "shard_size": shard_size, "cka": {"batch_size": batch}}
    figures = {"one": {"kind": "cka", "models": ["vit"]}}
    study = load_study(mini_with(tmp_path, analysis=analysis, figures=figures))
    for measure in map(registry.declared, ("cka", "cka_between")):
        assert measure.measuring(study, "vit", 0) == {"batch_size": expected}
