from pathlib import Path
from typing import Any

import pytest

from tests.helpers.studies import mini_with
from vitscope.measures import registry
from vitscope.studies.loading import load_study


def written(folder: Path, **shows: Any) -> Path:
    figures = {"one": {"kind": "attention_heads", "models": ["vit"]}}
    return mini_with(folder, analysis={"attention_maps": shows}, figures=figures)


def test_what_is_shown_by_default(tmp_path: Path) -> None:
    study = load_study(written(tmp_path))
    assert registry.declared("attention_maps").measuring(study, "vit", 0) == {
        "shows": {"block": None, "query": None, "queries": [], "head": 0, "mass": None},
        "chosen": {"shown": 2, "images": 256, "seed": study.analysis.seed},
    }
    work = registry.declared("attention_maps").work(study, "vit", 0, 2000, 25)
    assert work is not None
    assert work.passes == 2


@pytest.mark.parametrize(
    "shows",
    [
        {"block": -1, "query": [4, 5.5], "head": 2, "images": 1},
        {"block": "blocks.3", "query": None, "queries": [[0, 0], [31, 31]], "mass": 0.6},
    ],
)
def test_what_can_be_asked_for(tmp_path: Path, shows: dict[str, Any]) -> None:
    given = registry.declared("attention_maps").measuring(
        load_study(written(tmp_path, **shows)), "vit", 0
    )
    assert given["chosen"]["shown"] == shows.pop("images", 2)
    assert given["shows"] | shows == given["shows"]
