"""In a copy of the package: what is edited there must not be what other tests import."""

import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.coverage import covered
from tests.helpers.every_job import everything, kinds
from tests.helpers.processes import python
from tests.helpers.refusals import refusal
from vitscope.jobs.job import find_job
from vitscope.measures import registry
from vitscope.measures.needs import NEEDS
from vitscope.networks.building.family import family_names, module_of
from vitscope.package_data import ROOT
from vitscope.planning import code

OPENING = {name: f"vitscope.jobs.opening:{need.opens}" for name, need in NEEDS.items()}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, whose code is digested."""
    shutil.copytree(ROOT / "vitscope", tmp_path / "vitscope")
    monkeypatch.setattr(code, "PACKAGE", tmp_path / "vitscope")
    yield tmp_path / "vitscope"
    forget()


def forget() -> None:
    """Forget what was read: within a process, no file is read twice."""
    for name in vars(code).values():
        if hasattr(name, "cache_clear"):
            name.cache_clear()


def digest(job: str, *modules: str) -> str:
    forget()
    return code.code_digest(job, {"modules": modules})


def changes(file: Path, old: str, new: str, job: str, *modules: str) -> bool:
    """Tell whether an edit of a file changes the digest of a job; undoing it brings it back."""
    before, original = digest(job, *modules), file.read_text(encoding="utf-8")
    assert old in original
    file.write_text(original.replace(old, new) if old else original + new, encoding="utf-8")
    during = digest(job, *modules)
    file.write_text(original, encoding="utf-8")
    assert digest(job, *modules) == before
    return during != before


def rewrite_export(package: Path, line: str) -> None:
    """Let the work of the job `export_table` be a line."""
    text = f"def export_table_job():\n    {line}\n"
    (package / "jobs" / "tables.py").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("module", ["vitscope.measures.cka.compute", "vitscope.measures.kca"])
def test_a_name_that_is_not_there_is_refused(module: str) -> None:
    said = refusal(digest, "measure", f"{module}:measure_kca")
    assert said == f"A measure names {module}:measure_kca, which is not there: correct the name."


def test_of_a_job_its_work_alone_counts(copy: Path) -> None:
    own = copy / "jobs/measures.py"
    assert not changes(own, "", "\nUNUSED = 1\n", "merge")
    # What the result depends on is seen in the values.
    assert not changes(
        own, "def _values_of_merge_job(study", "def _values_of_merge_job(other", "merge"
    )
    assert changes(own, 'inputs.get(f"{prefix}blocks")', "None", "merge")
    # With the functions that the work calls.
    drawing = copy / "jobs/figures.py"
    assert changes(drawing, 'key.endswith("_sha256")', "key", "draw_figure")


def test_of_what_jobs_share_what_they_use_counts(copy: Path) -> None:
    edit = (copy / "jobs/opening.py", "else open_split_file(images)", "else images")
    assert changes(*edit, "measure", OPENING["predictions"])
    assert not changes(*edit, "measure", OPENING["network"])
    # A function that nobody reaches beside one that somebody does.
    tables = (copy / "files/tables.py", "cells.to_csv(partial", "cells.to_csv(other")
    assert changes(*tables, "export_table")
    assert not changes(*tables, "merge")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Merge the measured parts', '"""Other words'),
        ("# Keep the metadata of all parts", "# Nothing\n            #"),
        (
            "def read_parts_of(prefix: str, model: str)",
            "def read_parts_of(prefix: object, model: object)",
        ),
        ("import pandas as pd\n", "import pandas as pd\n\n\n"),
    ],
)
def test_what_changes_no_result_changes_no_digest(copy: Path, old: str, new: str) -> None:
    assert not changes(copy / "jobs/measures.py", old, new, "merge")


ROOM = "vitscope.measures.feature_variance"
OPENS = OPENING["latents"]
VIT = "vitscope.networks.building.families.vit"


@pytest.mark.parametrize(
    ("edited", "old", "new", "job", "modules", "changed"),
    [
        ("files/tensors.py", "def checksum", "@None\ndef checksum", "measure", (OPENS,), True),
        ("networks/finding/capture.py", "hook", "hooked", "measure", (OPENS,), False),
        ("networks/finding/capture.py", "hook", "hooked", "extract_latents", (), True),
        ("drawing/saving.py", "def save", "@None\ndef save", "draw_figure", (), True),
        # What is imported by a computed name is named, and counts as a whole.
        ("measures/feature_variance/compute.py", "", "\nX = 1\n", "measure", (OPENS,), False),
        (
            "measures/feature_variance/compute.py", "", "\nX = 1\n", "measure",
            (OPENS, f"{ROOM}.compute"), True,
        ),
        ("networks/building/families/vit.py", "", "\nX = 1\n", "extract_latents", (VIT,), True),
        ("networks/building/families/swin.py", "", "\nX = 1\n", "extract_latents", (VIT,), False),
        # What is run where a module is imported counts, whatever is used of it.
        ("files/tables.py", "", "\nprint()\n", "merge", (), True),
        ("__init__.py", "", "\nprint()\n", "merge", (), True),
    ],
)  # fmt: skip
def test_an_edit_of_what_is_reached_changes_it(
    copy: Path, edited: str, old: str, new: str, job: str, modules: tuple[str, ...], changed: bool
) -> None:
    assert changes(copy / edited, old, new, job, *modules) is changed


USES = [
    "import vitscope.goal\ny = vitscope.goal.x()",
    "from vitscope import goal\ny = goal.x()",
    "from vitscope.goal import x\ny = x()",
    "from vitscope.goal import x as z\ny = z()",
    "import vitscope.goal as other\ny = other.x()",
    "from . import goal\ny = goal.x",
    "from .goal import x\ny = [x]",
    "def y():\n    from vitscope.goal import x\n    return x()",
    "class y:\n    if True:\n        from .goal import x",
    "class y:\n    from .goal import x\n    z = x()",
    "from vitscope.goal import *\ny = x()",
    # A module that is handed on, or of which a name is computed, counts as a whole.
    "from vitscope import goal\ny = getattr(goal, 'x')",
    "from importlib import import_module\ny = import_module('vitscope.goal').x",
    # Through another, in a package relative to its parent, and in a circle.
    "from vitscope.between import x\ny = x()",
    "from vitscope import deep\ny = deep.x()",
    # By a decorator, a base, a default, and a constant of the module.
    "from vitscope.goal import x\n@x\ndef y(): pass",
    "from vitscope.goal import x\nclass y(x): pass",
    "from vitscope.goal import x\ndef y(z=x): pass",
    "from vitscope.goal import x\nX = {1: x}\ndef y(): return X",
    "from vitscope.goal import x\nX = {}\nX[1] = x\ndef y(): return X",
    "from vitscope.goal import x\nX = {}\nfor k in 'ab':\n    X[k] = x\ndef y(): return X",
    "from vitscope.goal import x\nclass y:\n    z: x",
]
NO_USES = [
    "from vitscope.goal import x\ny = 1",
    "from vitscope import goal\ny = goal.other",
    "from vitscope.goal import other\ny = other",
    "from vitscope.goal import x\ndef z(): return x()\ny = 1",
    "from vitscope.goal import x\ndef y(z: x) -> x: pass",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vitscope.goal import x\ny = 1",
]


@pytest.mark.parametrize(
    ("text", "used"), [*((text, True) for text in USES), *((text, False) for text in NO_USES)]
)
def test_every_way_to_use_a_name_is_followed(copy: Path, text: str, used: bool) -> None:
    goal = copy / "goal.py"
    # Used through a helper of its own module, and in a circle.
    goal.write_text(
        "def x(*_):\n    return _inner()\n\n\ndef _inner():\n    return 1\n\n\n"
        "other = 2\nimport vitscope.between\n",
        encoding="utf-8",
    )
    (copy / "between.py").write_text("from .goal import x\n", encoding="utf-8")
    (copy / "deep").mkdir()
    (copy / "deep" / "__init__.py").write_text("from .inner import x\n", encoding="utf-8")
    (copy / "deep" / "inner.py").write_text("from ..goal import x\n", encoding="utf-8")
    rewrite_export(copy, "from vitscope.start import y; y")
    (copy / "start.py").write_text(f"{text}\n", encoding="utf-8")
    assert changes(goal, "return 1", "return 2", "export_table") is used


@pytest.mark.parametrize(
    ("text", "line", "modules", "used"),
    [
        # Of a module that counts as a whole annotations do not.
        ("def y(z: x) -> x: pass", "1", ["vitscope.start"], False),
        ("def y(z: x): return x()", "1", ["vitscope.start"], True),
        ("class y:\n    z: x", "1", ["vitscope.start"], True),
        # It is imported to be taken from here.
        ("", "1", ["vitscope.start"], True),
        # Through a module that has it in annotations alone a name is followed.
        ("def y(z: x): pass", "from vitscope.start import x; x", [], True),
    ],
)
def test_of_annotations_what_is_taken_from_the_module_counts(
    copy: Path, text: str, line: str, modules: list[str], used: bool
) -> None:
    goal, start = copy / "goal.py", copy / "start.py"
    goal.write_text("def x():\n    return 1\n", encoding="utf-8")
    start.write_text(f"from vitscope.goal import x\n{text}\n", encoding="utf-8")
    rewrite_export(copy, line)
    assert changes(goal, "return 1", "return 2", "export_table", *modules) is used


def test_it_depends_on_neither_place_nor_date(copy: Path) -> None:
    for file in copy.rglob("*.py"):
        file.touch()
    there = digest("extract_latents")
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "PACKAGE", ROOT / "vitscope")
        assert code.code_digest("extract_latents", {}) == there


REMEMBERING = """
import sys
from pathlib import Path
from vitscope.files.python_code import found_definitions
from vitscope.planning import code
code.cache_code(Path(sys.argv[1]))
before = len(found_definitions), len(code._known_digests)
digest = code.code_digest("merge", {})
print(digest, len(found_definitions) - before[0], len(code._known_digests) - before[1])
"""


def test_digests_are_found_once_and_never_from_a_damaged_file(tmp_path: Path) -> None:
    digests, parsed = tmp_path / "vitscope-digests.json", tmp_path / "vitscope-definitions.json"

    def digest_and_new() -> tuple[str, int, int]:
        found, *new = python(REMEMBERING, tmp_path, cwd=ROOT).split()
        return found, *map(int, new)

    found, *new = digest_and_new()
    assert (new[0] > 3, new[1]) == (True, 1)
    assert digest_and_new() == (found, 0, 0)
    digests.unlink()
    assert digest_and_new() == (found, 0, 1)
    for damage in (b"{", b"[1]", b"\xff", b"null"):
        for file in (digests, parsed):
            file.write_bytes(damage)
        assert digest_and_new() == (found, *new)


def test_the_lock_of_an_editor_is_no_source(copy: Path) -> None:
    before = digest("merge")
    (copy / ".#tables.py").symlink_to("nobody@nowhere.1")
    assert digest("merge") == before


def test_digests_of_earlier_sources_are_not_loaded(tmp_path: Path) -> None:
    file, known = tmp_path / "digests.json", code.Cache()
    file.write_text('{"old merge": "1", "new merge": "2"}', encoding="utf-8")
    known.keep_in(file, "new")
    assert known == {"new merge": "2"}


@cache
def reruns() -> dict[str, set[str]]:
    """Return for every module the kinds of jobs that an edit of some of it reruns.

    The module of a job's family is left out.
    """
    found: dict[str, set[str]] = {}
    study, families = everything(), {module_of(name) for name in family_names()}
    for name, chosen in kinds():
        about = {"measure", "table", "figure", "dataset"} & chosen.keys()
        label = " ".join([name, *(chosen[each] for each in about)])
        named = find_job(name).values(study, chosen).get("modules", [])
        for module, _ in covered(name, *(each for each in named if each not in families)):
            found.setdefault(module, set()).add(label)
    return found


@pytest.mark.parametrize("room", sorted({registry.module(name) for name in registry.names()}))
def test_a_room_reruns_the_jobs_of_its_tables_alone(room: str) -> None:
    family = {name for name in registry.names() if registry.module(name) == room}
    readers = {kind for kind, figure in registry.kinds().items() if family & {*figure.tables}}
    merging = {name for name in registry.names() if registry.declared(name).parts_of in family}
    # Those of all measures have no measure in their name.
    jobs = {job for job in reruns().get(room, ()) if " " in job}
    assert {job.split()[1] for job in jobs} <= family | readers | merging


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("ATTENTION_PART", {"attention"}),
        ("LEAST_BATCH", {"cka", "cka_between"}),
        ("PROBE_TOKENS_TABLE", set()),
    ],
)
def test_of_a_family_what_a_measure_uses_reruns_it_and_no_other(
    name: str, measures: set[str]
) -> None:
    found = set()
    for measure in registry.names():
        declared = registry.declared(measure)
        functions = filter(None, (declared.merge.function, declared.measure))
        if any(each[1] == name for each in covered("merge", *functions)):
            found.add(measure)
    assert found == measures
