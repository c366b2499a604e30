"""Models that are alike but for one thing: which are paired, by what a study says of them."""

from pathlib import Path

import pytest

from tests.helpers.studies import mini, mini_with
from vitscope.claims import claim
from vitscope.claims.claim import Traits
from vitscope.jobs.claims import traits_for_claims_job
from vitscope.networks.building.family import complete_family_arch
from vitscope.networks.building.networks import empty_network
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

MINI = load_study(BUNDLED_STUDIES / "mini.yaml")


def pairs_in(figure: str, choose, study: Study = MINI) -> list[tuple[str, ...]]:
    models = study.figures[figure].models
    return choose({name: Traits({"msa"}, traits_for_claims_job(study, name)) for name in models})


def test_the_models_of_the_default_study_are_paired_as_its_figures_mean_them() -> None:
    assert pairs_in("fig4", claim.less_against_more_data) == [("vit_6", "vit")]
    sizes = [("resnet_6", "resnet_25"), ("resnet_6", "resnet"), ("resnet_25", "resnet")]
    sizes += [("vit_6", "vit_25"), ("vit_6", "vit"), ("vit_25", "vit")]
    assert pairs_in("fig5_sizes", claim.less_against_more_data) == sizes
    assert pairs_in("fig6", claim.token_against_mean) == [("vit_global", "vit_gap")]
    local = ["vit_3x3", "vit_5x5", "vit_8x8"]
    pairs = pairs_in("fig7_hessian", claim.local_against_global)
    assert pairs == [(each, "vit_global") for each in local]
    pairs = pairs_in("fig7_hessian", claim.global_against_local)
    assert pairs == [("vit_global", each) for each in local]
    # Seeds do not matter here.
    trained = [f"{name}{seed}" for name in local[:2] for seed in ("", "_1", "_2")]
    pairs = pairs_in("fig7", claim.local_against_global)
    assert {ours for ours, _ in pairs} == {*trained, "vit_8x8"}
    assert len(pairs) == 7 * 3
    assert pairs_in("fig12b", claim.alternet_against_its_cnn) == [("cnn_with_msas", "cnn")]
    # Seeds differ, and nothing that any claim is about.
    for choose in (claim.less_against_more_data, claim.token_against_mean):
        assert pairs_in("seeds", choose) == []


def test_patches_are_paired_by_size() -> None:
    patches = load_study(BUNDLED_STUDIES / "patches.yaml")
    found = pairs_in("hessian", claim.small_against_large_patches, patches)
    assert found == [("patch_2", "patch_4"), ("patch_2", "patch_8"), ("patch_4", "patch_8")]


def test_a_training_with_sam_is_paired_with_the_same_without() -> None:
    sam = load_study(BUNDLED_STUDIES / "sam.yaml")
    assert pairs_in("landscape", claim.sam_against_none, sam) == [("vit_sam", "vit")]


WITHOUT = {"attention": [0, 0, 0, 0]}


@pytest.mark.parametrize(
    ("cnn", "paired"),
    [
        ({"depth": 50} | WITHOUT, True),
        ({"block": "bottleneck", "blocks": [3, 4, 6, 4]} | WITHOUT, True),
        ({"block": "bottleneck", "blocks": [3, 4, 6, 4], "width": 64} | WITHOUT, True),
        ({"depth": 101} | WITHOUT, False),
        ({"depth": 50, "width": 32} | WITHOUT, False),
    ],
)
def test_an_alternet_of_a_published_depth_is_paired_by_what_is_built(
    tmp_path: Path, cnn: dict[str, object], paired: bool
) -> None:
    models = mini()["models"]
    models["cnn"]["arch"], models["cnn_with_msas"]["arch"] = cnn, {"depth": 50}
    study = load_study(mini_with(tmp_path, models=models, buildups=None))
    found = pairs_in("fig12b", claim.alternet_against_its_cnn, study)
    assert found == ([("cnn_with_msas", "cnn")] if paired else [])


@pytest.mark.parametrize("family", ["alternet", "resnet"])
def test_what_is_completed_builds_the_same_network(family: str) -> None:
    said = {"family": family, "classes": 10, "image_size": 64, "mean": [0, 0, 0]}
    arch = {"depth": 34, "width": 8}
    whole = complete_family_arch(family, arch)
    assert "depth" not in whole
    names = [{*empty_network({**said, "arch": each}).state_dict()} for each in (arch, whole)]
    assert names[0] == names[1]


GLOBAL = {"family": "vit", "arch.depth": 4, "training.epochs": 20, "training.seed": 0}


@pytest.mark.parametrize(
    ("other", "paired"),
    [
        ({}, True),
        ({"training.seed": 1}, True),
        ({"training.epochs": 30}, False),
        ({"arch.depth": 5}, False),
        ({"family": "swin"}, False),
    ],
)
def test_nothing_else_may_differ_but_the_seed(other: dict[str, object], paired: bool) -> None:
    local = GLOBAL | {"arch.attention_window": 3} | other
    models = {"a": Traits({"msa"}, GLOBAL), "b": Traits({"msa"}, local)}
    assert claim.local_against_global(models) == ([("b", "a")] if paired else [])


def test_attention_is_paired_with_the_same_network_of_other_weights() -> None:
    cifar = load_study(BUNDLED_STUDIES / "cifar100.yaml")
    pairs = [("vit_light", other) for other in ("vit_fixed", "vit_uniform")]
    kinds = {"vit_light": {"msa", "mlp"}, "vit_fixed": {"mlp"}, "vit_uniform": {"mlp"}}
    models = {name: Traits(kinds[name], traits_for_claims_job(cifar, name)) for name in kinds}
    assert claim.attention_against_other_mixing(models) == pairs


def test_controls_are_compared_and_counted_nowhere_else() -> None:
    """All models of cifar100 that mix by weights or keys that no image changes are controls."""
    cifar = load_study(BUNDLED_STUDIES / "cifar100.yaml")
    mixing = {name: model.arch.get("mixing") for name, model in cifar.models.items()}
    controls = {name for name, how in mixing.items() if how}
    assert controls == {name for name, model in cifar.models.items() if model.control}
    assert len(controls) == 26
    kinds = {"vit_light": {"msa"}, "vit_fixed": {"msa"}, "resnet_light": {"conv"}}
    kinds["alternet_fixed"] = {"conv"}
    models = {name: Traits(kinds[name], traits_for_claims_job(cifar, name)) for name in kinds}
    assert claim.every_model(models) == [("vit_light",), ("resnet_light",)]
    assert claim.every_pair(models) == [("vit_light", "resnet_light")]
    assert claim.attending(models) == [("vit_light",)]
    assert claim.convolutional(models) == [("resnet_light",)]
    assert claim.attention_against_convolution(models) == [("vit_light", "resnet_light")]
    assert claim.attention_against_other_mixing(models) == [("vit_light", "vit_fixed")]


def test_models_without_msas_or_settings_are_in_no_pair() -> None:
    local = GLOBAL | {"arch.attention_window": 3}
    assert not claim.local_against_global(
        {"a": Traits({"conv"}, GLOBAL), "b": Traits({"conv"}, local)}
    )
    unknown = {"a": Traits({"msa"}), "b": Traits({"msa"})}
    choosing = [value for name, value in vars(claim).items() if "_against_" in name]
    assert len(choosing) == 11
    assert not any(choose(unknown) for choose in choosing)
