import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.refusals import refusal
from tests.helpers.studies import bundled
from tests.settings.test_study import MISSING, STUDY, changed, written
from vitscope.measures import registry
from vitscope.networks.building.family import family_names
from vitscope.studies.loading import load_study

FAULTS = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text(encoding="utf-8"))
EVERY = {"KINDS": registry.kinds(), "FAMILIES": family_names()}
BASES = {"own": STUDY, "mini": bundled("mini")}


def read(fault: Any) -> dict[str, Any]:
    """Return a fault with its change and its whole sentence."""
    if isinstance(fault, dict):
        return fault
    key, value, rest = fault
    return {"change": {key: value}, "sentence": f"{key}: {rest}"}


@pytest.mark.parametrize(
    ("base", "fault"),
    [(base, read(fault)) for base, faults in FAULTS.items() for fault in faults],
    ids=lambda each: each["sentence"][:60] if isinstance(each, dict) else each,
)
def test_what_is_wrong_is_refused_in_a_sentence(
    tmp_path: Path, base: str, fault: dict[str, Any]
) -> None:
    (tmp_path / "mine.py").write_text("def net(n): ...\n")
    changes = fault.get("change", {}) | ({fault["remove"]: MISSING} if "remove" in fault else {})
    path = written(tmp_path, changed(BASES[base], changes))
    found = refusal(load_study, path)
    sentence = fault["sentence"]
    for word, names in EVERY.items():
        sentence = sentence.replace(word, ", ".join(sorted(names)))
    wanted = ".*".join(map(re.escape, f"{path}: {sentence}".split("...")))
    assert re.fullmatch(wanted, found), found
