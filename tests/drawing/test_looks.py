from itertools import combinations

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from vitscope.drawing.figure import Member
from vitscope.drawing.looks import Look, look_of, looks_of
from vitscope.drawing.saving import style
from vitscope.package_data import STYLE

FAMILIES = ["resnet", "vit", "pit", "swin", "alternet", "mixer", "convnext"]


def look(family: str, nth: int = 0) -> Look:
    return look_of(Member("model", "Model", family, nth=nth))


# Names that stand for all looks of families that are not known.
OTHERS = [f"family{i}" for i in range(40)]
OTHER_LOOKS = {look(name): name for name in OTHERS}


def members_of(*families: str) -> list[Member]:
    return [Member(f"m{i}", f"Model {i}", family) for i, family in enumerate(families)]


def test_the_first_of_each_look_has_it_as_it_is():
    families = [*FAMILIES, *OTHER_LOOKS.values()]
    assert looks_of(members_of(*families)) == [look(name) for name in families]


def test_models_of_one_look_share_its_marker_and_nothing_else_that_tells_them_apart():
    families = [name for name in [*FAMILIES, *OTHER_LOOKS.values()] for _ in range(6)]
    looks = looks_of(members_of(*families))
    assert [look.marker for look in looks] == [look(name).marker for name in families]
    assert len({look.color for look in looks}) == len(looks)
    for first in range(0, len(looks), 6):
        assert len({look.dashes for look in looks[first : first + 6]}) == 6


def test_networks_of_a_family_that_says_nothing_of_them_differ():
    assert len({look("python", nth) for nth in range(4)}) == 4


def test_families_that_look_alike_count_as_one():
    assert look("resnet") == look("timm_resnet") == look("preresnet")
    twins = [name for name in OTHERS if look(name) == look(OTHERS[0])][:6]
    for families in (["resnet", "timm_resnet"] * 3, twins):
        assert len(set(families)) > 1
        looks = looks_of(members_of(*families))
        assert looks == looks_of(members_of(*families[:1] * 6))
        assert len({look.color for look in looks}) == 6


def test_more_models_of_one_look_than_shades_still_differ():
    looks = looks_of(members_of(*["vit"] * 36))
    assert len(set(looks)) == 36
    assert len({(look.color, look.dashes) for look in looks}) == 36
    assert len({(look.color, look.half_filled) for look in looks[:12]}) == 12


def test_shades_of_a_colour_can_be_seen():
    white = np.array([1, 1, 1])
    for family in FAMILIES:
        shades = [np.array(to_rgb(look.color)) for look in looks_of(members_of(*[family] * 6))]
        assert min(np.abs(one - other).max() for one, other in combinations(shades, 2)) > 0.06
        assert min(np.abs(shade - white).max() for shade in shades) > 0.25


def test_hollow_markers_are_never_half_filled():
    with style(STYLE):
        looks = looks_of(members_of("vit", "vit"))
        assert [look.half_filled for look in looks] == [False, True]
        lines = [Line2D([], [], **look.hollow) for look in looks]
    assert [line.get_fillstyle() for line in lines] == ["full", "full"]
    assert {line.get_markerfacecolor() for line in lines} == {"white"}
