from dataclasses import asdict

from vitscope.measures import registry
from vitscope.studies.loading import BUNDLED_STUDIES, load_study


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
