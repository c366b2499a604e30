"""What a module imports in vain costs seconds of each command and job."""

import pytest

from tests.helpers.claims import kinds_with_claims
from tests.helpers.processes import python
from vitscope.measures import registry
from vitscope.package_data import ROOT

HEAVY = {"torch", "torchvision", "timm", "numpy", "scipy", "pandas", "pyarrow", "matplotlib", "PIL"}
DECLARATIONS = ", ".join({registry.module(name) for name in registry.names()})
CLAIMS = (str(registry.kinds()[kind].claims) for kind in kinds_with_claims())
COUNTING = ", ".join({"vitscope.claims.counting", *(each.partition(":")[0] for each in CLAIMS)})
KINDS = "from vitscope.measures import registry; kinds = registry.kinds().values()"
UNNEEDED = {
    "declarations": (f"import {DECLARATIONS}", HEAVY),
    "studies": ("import vitscope.studies.loading", HEAVY),
    "counting": (f"import {COUNTING}", {"torch", "vitscope.measures.registry"}),
    "kinds": (f"import vitscope.drawing.figure; {KINDS}", {"matplotlib"}),
    "drawing": (
        f"from pkgutil import resolve_name; {KINDS}; [resolve_name(kind.draw) for kind in kinds]",
        {"torch"},
    ),
    "weights": ("import vitscope.networks.checkpoints.weight_sources", {"torch"}),
    "families": (
        "from vitscope.networks.building import family; "
        "[*map(family.arch_schema, family.family_names())]",
        {"torch", "timm"},
    ),
    "sources": (
        "from vitscope.data import opening; [*map(opening.declared, opening.source_kinds())]",
        {"PIL", "numpy", "pyarrow"},
    ),
}


@pytest.mark.parametrize(("code", "names"), UNNEEDED.values(), ids=UNNEEDED)
def test_what_is_not_needed_is_not_imported(code: str, names: set[str]) -> None:
    assert python(f"import sys; {code}; print(*{{*sys.modules}} & {names})", cwd=ROOT) == "\n"
