"""In a copy of the package: what is edited there must not be what other tests import."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vitscope.package_data import ROOT
from vitscope.planning import code


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, whose code is digested."""
    shutil.copytree(ROOT / "vitscope", tmp_path / "vitscope")
    monkeypatch.setattr(code, "PACKAGE", tmp_path / "vitscope")
    monkeypatch.setattr(code, "JOBS", tmp_path / "vitscope" / "jobs")
    yield tmp_path / "vitscope"
    forget()


def forget() -> None:
    """Forget what was read: within a process, no file is read twice."""
    for name in vars(code).values():
        if hasattr(name, "cache_clear"):
            name.cache_clear()


def digest(job: str, *modules: str) -> str:
    """Digest the work of a job as the files are now."""
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


def write_job(package: Path, line: str) -> None:
    """Write a kind of work whose `run` has a line."""
    text = f"JOB = None\n\n\ndef run():\n    {line}\n"
    (package / "jobs" / "go.py").write_text(text, encoding="utf-8")


def test_of_a_job_its_work_alone_counts(copy: Path) -> None:
    own = copy / "jobs/merge.py"
    assert not changes(own, "", "\nUNUSED = 1\n", "merge")
    # What the result depends on is seen in the values.
    assert not changes(own, "def _values(study", "def _values(other", "merge")
    assert changes(own, 'inputs.get(f"{prefix}blocks")', "None", "merge")
    # With the functions that the work calls.
    drawing = copy / "jobs/draw_figure.py"
    assert changes(drawing, 'key.endswith("_sha256")', "key", "draw_figure")


def test_of_what_jobs_share_what_they_name_counts(copy: Path) -> None:
    edit = (copy / "jobs/opening.py", "else open_split_file(images)", "else images")
    assert changes(*edit, "measure_predictions")
    assert not changes(*edit, "measure_network")


ROOM = "vitscope.measures.feature_variance"
VIT = "vitscope.networks.building.families.vit"


def test_an_edit_of_what_is_reached_changes_it(copy: Path) -> None:
    for edited, job, modules, changed in (
        ("files/tensors.py", "measure_latents", (), True),
        ("__init__.py", "measure_latents", (), True),
        ("networks/finding/capture.py", "measure_latents", (), False),
        # Of the modules of jobs, what is named counts.
        ("jobs/opening.py", "measure_latents", (), False),
        ("settings/study.py", "measure_latents", (), False),
        ("networks/finding/capture.py", "extract_latents", (), True),
        ("drawing/saving.py", "draw_figure", (), True),
        # What is imported by a computed name is named.
        ("measures/feature_variance/compute.py", "measure_latents", (), False),
        ("measures/feature_variance/compute.py", "measure_latents", (f"{ROOM}.compute",), True),
        ("measures/cka/merge.py", "measure_latents", ("vitscope.measures.cka.compute",), False),
        ("networks/building/families/vit.py", "extract_latents", (VIT,), True),
        ("networks/running/held.py", "measure_pass", (), True),
        ("networks/running/held.py", "extract_latents", (), False),
        ("networks/building/families/swin.py", "extract_latents", (VIT,), False),
    ):
        assert changes(copy / edited, "", "# edited\n", job, *modules) is changed, (edited, modules)


IMPORTS = [
    "import vitscope.goal",
    "from vitscope import goal",
    "from vitscope.goal import x",
    "import vitscope.goal as other",
    "from . import goal",
    "from .goal import x",
    "def f():\n    from vitscope.goal import x",
    "class C:\n    if True:\n        from .goal import x",
    "from vitscope.goal import *",
    # Through another, in a package relative to its parent, and in a circle.
    "import vitscope.between",
    "from vitscope import deep",
]


def test_every_form_of_import_is_followed_but_those_for_types(copy: Path) -> None:
    goal, start = copy / "goal.py", copy / "start.py"
    goal.write_text("x = 1\nimport vitscope.between\n", encoding="utf-8")
    (copy / "between.py").write_text("from .goal import x\n", encoding="utf-8")
    (copy / "deep").mkdir()
    (copy / "deep" / "__init__.py").write_text("from .inner import x\n", encoding="utf-8")
    (copy / "deep" / "inner.py").write_text("from ..goal import x\n", encoding="utf-8")
    write_job(copy, "import vitscope.start")
    for line in IMPORTS:
        start.write_text(f"{line}\n", encoding="utf-8")
        assert changes(goal, "", "# edited\n", "go"), line
    lines = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vitscope.goal import x\n"
    start.write_text(lines, encoding="utf-8")
    assert not changes(goal, "", "# edited\n", "go")


def test_it_depends_on_neither_place_nor_date(copy: Path) -> None:
    for file in copy.rglob("*.py"):
        file.touch()
    there = digest("extract_latents")
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "PACKAGE", ROOT / "vitscope")
        patch.setattr(code, "JOBS", ROOT / "vitscope" / "jobs")
        assert code.code_digest("extract_latents", {}) == there


REMEMBERING = """
import sys
from pathlib import Path
from vitscope.files import imports
from vitscope.planning.code import code_digest
imports.remember(Path(sys.argv[1]))
known = len(imports._found)
print(code_digest("merge", {}), len(imports._found) - known)
"""


def test_what_modules_import_is_found_once_and_never_from_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "imports.json"

    def digest_and_parsed() -> list[str]:
        command = [sys.executable, "-c", REMEMBERING, str(file)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        return done.stdout.split()

    found, parsed = digest_and_parsed()
    assert int(parsed) > 3
    assert digest_and_parsed() == [found, "0"]
    for damage in (b"{", b"[1]", b"\xff"):
        file.write_bytes(damage)
        assert digest_and_parsed() == [found, parsed]
