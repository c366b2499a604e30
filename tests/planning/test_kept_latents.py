"""Latents are kept where all of a study's are small, as counted by hand from its block tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.studies import FROZEN
from vitscope.planning import costs
from vitscope.planning.kept_latents import keeps_latents, latents_bytes, say_what_is_kept
from vitscope.settings.study import Study
from vitscope.studies.loading import load_study


@pytest.fixture(scope="module")
def frozen() -> Study:
    return load_study(FROZEN)


def with_analysis(study: Study, **changes: Any) -> Study:
    return replace(study, analysis=replace(study.analysis, **changes))


def bytes_by_hand(study: Study) -> int:
    # Of latents: variance of both networks, amplitudes of the ViT at three moments, and CKA.
    values = {model: costs.count_network(study, model).values for model in study.models}
    shown = [*study.models_of("feature_variance"), *study.models_of("fourier")]
    return sum(
        4 * values[model] * study.images(model)
        for model in {*shown, *study.models_of("cka_between")}
    )


def test_latents_are_counted(frozen: Study, tmp_path: Path) -> None:
    found = sum(latents_bytes(frozen, tmp_path / "counted.json"))
    assert found == bytes_by_hand(frozen) > 0
    half = with_analysis(frozen, latents_dtype="bfloat16")
    assert 2 * sum(latents_bytes(half, tmp_path / "counted.json")) == found


def test_a_bound_decides(frozen: Study, tmp_path: Path) -> None:
    counted = tmp_path / "counted.json"
    whole = bytes_by_hand(frozen) / 1e9
    assert keeps_latents(frozen, whole, counted)
    assert not keeps_latents(frozen, 0.999 * whole, counted)
    for keep in (True, False):
        assert keeps_latents(with_analysis(frozen, keep_latents=keep), whole, counted) is keep
    assert say_what_is_kept(frozen, whole, counted).startswith("Latents are kept: 0.404 GB")
    assert "are measured in memory, not written." in say_what_is_kept(frozen, 0, counted)


def test_a_network_is_counted_once(
    frozen: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = tmp_path / "counted.json"
    first = [*latents_bytes(frozen, counted)]
    monkeypatch.setattr(costs, "count_network", None)
    assert [*latents_bytes(frozen, counted)] == first
    counted.write_text("damaged")
    with pytest.raises(TypeError):
        [*latents_bytes(frozen, counted)]


def test_a_network_that_cannot_be_counted_keeps_nothing(frozen: Study, tmp_path: Path) -> None:
    name = frozen.models_of("feature_variance")[0]
    broken = replace(frozen.models[name], points=[{"module": "nowhere", "kind": "conv"}])
    study = replace(frozen, models=frozen.models | {name: broken})
    assert not keeps_latents(study, 1e9, tmp_path / "counted.json")
