from dataclasses import asdict
from pathlib import Path

import pytest

from tests.helpers.refusals import refusal
from tests.measures.cka.test_measure import changed
from vitscope.measures import registry
from vitscope.studies.loading import BUNDLED_STUDIES, load_study


@pytest.mark.parametrize("kind", ["probe", "probe_tokens"])
def test_fewer_images_than_folds_are_refused(tmp_path: Path, kind: str) -> None:
    path = changed(tmp_path, {"images": 4}, kind)
    assert refusal(load_study, path) == (
        f"{path}: models.vit is measured on too few images for a figure of the kind '{kind}': "
        "found 4, allowed: 5 or more."
    )


def test_what_jobs_depend_on() -> None:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    probe, tokens = map(registry.declared, ("probe", "probe_tokens"))
    assert probe.measuring(study, "vit", 0) == {
        "shard": 0, "selection": study.selection("vit"), "tokens": 4
    }  # fmt: skip
    bootstrap = asdict(study.analysis.bootstrap)
    assert probe.merging(study, "vit") == {"neighbours": 20, **bootstrap}
    assert tokens.merging(study, "vit") == {"threshold": 3.0, **bootstrap}
    # Classes are of the data: a network without a classifier is probed, too.
    assert not probe.needs_classes
