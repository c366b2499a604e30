"""In copies of the package: what is edited there must not be what other tests import."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "vitscope", tmp_path / "vitscope")
    return tmp_path


def digest(root: Path, job: str, *modules: str) -> str:
    """Return the digest as a workflow in `root` sees it."""
    code = (
        "import sys; from vitscope.planning.code import code_digest\n"
        "print(code_digest(sys.argv[1], {'modules': sys.argv[2:]}))\n"
    )
    command = [sys.executable, "-c", code, job, *modules]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, cwd=root, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def changes(root: Path, edited: str, job: str, *modules: str, text: str = "# edited\n") -> bool:
    """Whether an edit of a file changes the digest of a job, and undoing it brings it back."""
    file = root / edited
    before, original = digest(root, job, *modules), file.read_text(encoding="utf-8")
    file.write_text(f"{original}{text}", encoding="utf-8")
    during = digest(root, job, *modules)
    file.write_text(original, encoding="utf-8")
    assert digest(root, job, *modules) == before
    return during != before


def write_job(root: Path, line: str) -> None:
    """Write a kind of work whose `run` has a line."""
    text = f"JOB = None\n\n\ndef run():\n    {line}\n"
    (root / "vitscope" / "jobs" / "go.py").write_text(text, encoding="utf-8")


def test_of_a_job_its_work_alone_counts(copy: Path) -> None:
    own = "vitscope/jobs/merge.py"
    assert not changes(copy, own, "merge", text="\nUNUSED = 1\n")
    file = copy / own
    before, text = digest(copy, "merge"), file.read_text(encoding="utf-8")
    # What the result depends on is seen in the values.
    assert "def _values(study" in text
    file.write_text(text.replace("def _values(study", "def _values(other"), encoding="utf-8")
    assert digest(copy, "merge") == before
    assert 'inputs.get(f"{prefix}blocks")' in text
    file.write_text(text.replace('inputs.get(f"{prefix}blocks")', "None"), encoding="utf-8")
    assert digest(copy, "merge") != before


def test_of_what_jobs_share_what_they_name_counts(copy: Path) -> None:
    file, jobs = copy / "vitscope/jobs/opening.py", ("measure_predictions", "measure_network")
    before, text = [digest(copy, job) for job in jobs], file.read_text(encoding="utf-8")
    assert "else Split(images)" in text
    file.write_text(text.replace("else Split(images)", "else images"), encoding="utf-8")
    after = [digest(copy, job) for job in jobs]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True]


def test_a_function_that_the_work_calls_counts(copy: Path) -> None:
    file = copy / "vitscope/jobs/draw_figure.py"
    before, text = digest(copy, "draw_figure"), file.read_text(encoding="utf-8")
    assert 'key.endswith("_sha256")' in text
    file.write_text(text.replace('key.endswith("_sha256")', "key"), encoding="utf-8")
    assert digest(copy, "draw_figure") != before


ROOM = "vitscope.measures.feature_variance"


@pytest.mark.parametrize(
    ("edited", "job", "modules", "changed"),
    [
        ("vitscope/files/tensors.py", "measure_latents", (), True),
        ("vitscope/__init__.py", "measure_latents", (), True),
        ("vitscope/networks/finding/capture.py", "measure_latents", (), False),
        # Of the modules of jobs, what is named counts.
        ("vitscope/jobs/opening.py", "measure_latents", (), False),
        ("vitscope/jobs/merge.py", "measure_latents", (), False),
        ("vitscope/settings/study.py", "measure_latents", (), False),
        ("vitscope/networks/finding/capture.py", "extract_latents", (), True),
        ("vitscope/drawing/looks.py", "merge", (), False),
        ("vitscope/drawing/saving.py", "draw_figure", (), True),
        # What is imported by a computed name is named.
        ("vitscope/measures/feature_variance/compute.py", "measure_latents", (), False),
        (
            "vitscope/measures/feature_variance/compute.py",
            "measure_latents",
            (f"{ROOM}.compute",),
            True,
        ),
        (
            "vitscope/measures/cka/merge.py",
            "measure_latents",
            ("vitscope.measures.cka.compute", "vitscope.measures.cka.table"),
            False,
        ),
        (
            "vitscope/networks/building/families/vit.py",
            "extract_latents",
            ("vitscope.networks.building.families.vit",),
            True,
        ),
        (
            "vitscope/networks/building/families/swin.py",
            "extract_latents",
            ("vitscope.networks.building.families.vit",),
            False,
        ),
    ],
)
def test_an_edit_of_what_is_reached_changes_it(
    copy: Path, edited: str, job: str, modules: tuple[str, ...], changed: bool
) -> None:
    assert changes(copy, edited, job, *modules) is changed


def test_what_is_imported_for_types_alone_changes_nothing(copy: Path) -> None:
    goal, start = copy / "vitscope" / "goal.py", copy / "vitscope" / "start.py"
    goal.write_text("x = 1\n", encoding="utf-8")
    lines = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vitscope.goal import x\n"
    start.write_text(lines, encoding="utf-8")
    write_job(copy, "import vitscope.start")
    assert not changes(copy, "vitscope/goal.py", "go")


IMPORTS = {
    "absolute": "import vitscope.goal",
    "named": "from vitscope import goal",
    "of a name in it": "from vitscope.goal import x",
    "under another name": "import vitscope.goal as other",
    "relative": "from . import goal",
    "relative of a name in it": "from .goal import x",
    "in a function": "def f():\n    from vitscope.goal import x",
    "in a class, conditionally": "class C:\n    if True:\n        from .goal import x",
    "through another": "import vitscope.between",
    "everything": "from vitscope.goal import *",
}


@pytest.mark.parametrize("line", IMPORTS.values(), ids=IMPORTS.keys())
def test_every_form_of_import_is_followed(copy: Path, line: str) -> None:
    (copy / "vitscope" / "goal.py").write_text("x = 1\n", encoding="utf-8")
    (copy / "vitscope" / "between.py").write_text("from .goal import x\n", encoding="utf-8")
    (copy / "vitscope" / "start.py").write_text(f"{line}\n", encoding="utf-8")
    write_job(copy, "import vitscope.start")
    assert changes(copy, "vitscope/goal.py", "go")


def test_packages_relative_to_their_parent(copy: Path) -> None:
    package = copy / "vitscope" / "deep"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import x\n", encoding="utf-8")
    (package / "inner.py").write_text("from ..goal import x\n", encoding="utf-8")
    (copy / "vitscope" / "goal.py").write_text("x = 1\n", encoding="utf-8")
    write_job(copy, "from vitscope import deep")
    assert changes(copy, "vitscope/goal.py", "go")
    assert changes(copy, "vitscope/deep/inner.py", "go")


def test_modules_that_import_one_another(copy: Path) -> None:
    (copy / "vitscope" / "one.py").write_text("import vitscope.two\n", encoding="utf-8")
    (copy / "vitscope" / "two.py").write_text("import vitscope.one\n", encoding="utf-8")
    write_job(copy, "import vitscope.one")
    assert changes(copy, "vitscope/two.py", "go")


def test_it_depends_on_neither_place_nor_date(copy: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copytree(copy / "vitscope", elsewhere / "vitscope")
    for file in elsewhere.rglob("*.py"):
        file.touch()
    assert digest(elsewhere, "extract_latents") == digest(copy, "extract_latents")


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
    for damage in (b"", b"{", b"[1]", b"\xff", b'{"a": 1}'):
        file.write_bytes(damage)
        assert digest_and_parsed() == [found, parsed]
