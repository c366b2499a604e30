"""In copies of the package: what is edited there must not be what other tests import."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "vitscope", tmp_path / "vitscope")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    return tmp_path


def digest(root: Path, script: str, *modules: str) -> str:
    """Return the digest as a workflow in `root` sees it."""
    code = (
        "import sys; from pathlib import Path; from vitscope.workflow.digests import code_digest\n"
        "print(code_digest(Path(sys.argv[1]), *sys.argv[2:]))\n"
    )
    command = [sys.executable, "-c", code, f"scripts/{script}.py", *modules]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def changes(root: Path, edited: str, script: str, *modules: str) -> bool:
    """Whether an edit of a file changes the digest of a script, and undoing it brings it back."""
    file = root / edited
    before, text = digest(root, script, *modules), file.read_text(encoding="utf-8")
    file.write_text(f"{text}# edited\n", encoding="utf-8")
    during = digest(root, script, *modules)
    file.write_text(text, encoding="utf-8")
    assert digest(root, script, *modules) == before
    return during != before


ROOM = "vitscope.measures.feature_variance"


@pytest.mark.parametrize(
    ("edited", "script", "modules", "changed"),
    [
        ("scripts/measure_latents.py", "measure_latents", (), True),
        ("vitscope/files/tensors.py", "measure_latents", (), True),
        ("vitscope/__init__.py", "measure_latents", (), True),
        ("vitscope/networks/finding/capture.py", "measure_latents", (), False),
        ("scripts/merge.py", "measure_latents", (), False),
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
            "vitscope/measures/feature_variance/merge.py",
            "measure_latents",
            (f"{ROOM}.compute", f"{ROOM}.table"),
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
    copy: Path, edited: str, script: str, modules: tuple[str, ...], changed: bool
) -> None:
    assert changes(copy, edited, script, *modules) is changed


def test_what_is_imported_for_types_alone_changes_nothing(copy: Path) -> None:
    goal, start = copy / "vitscope" / "goal.py", copy / "vitscope" / "start.py"
    goal.write_text("x = 1\n", encoding="utf-8")
    lines = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vitscope.goal import x\n"
    start.write_text(lines, encoding="utf-8")
    (copy / "scripts" / "go.py").write_text("import vitscope.start\n", encoding="utf-8")
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
    (copy / "scripts" / "go.py").write_text("import vitscope.start\n", encoding="utf-8")
    assert changes(copy, "vitscope/goal.py", "go")


def test_packages_relative_to_their_parent(copy: Path) -> None:
    package = copy / "vitscope" / "deep"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import x\n", encoding="utf-8")
    (package / "inner.py").write_text("from ..goal import x\n", encoding="utf-8")
    (copy / "vitscope" / "goal.py").write_text("x = 1\n", encoding="utf-8")
    (copy / "scripts" / "go.py").write_text("from vitscope import deep\n", encoding="utf-8")
    assert changes(copy, "vitscope/goal.py", "go")
    assert changes(copy, "vitscope/deep/inner.py", "go")


def test_modules_that_import_one_another(copy: Path) -> None:
    (copy / "vitscope" / "one.py").write_text("import vitscope.two\n", encoding="utf-8")
    (copy / "vitscope" / "two.py").write_text("import vitscope.one\n", encoding="utf-8")
    (copy / "scripts" / "go.py").write_text("import vitscope.one\n", encoding="utf-8")
    assert changes(copy, "vitscope/two.py", "go")


def test_it_depends_on_neither_place_nor_date(copy: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for part in ("vitscope", "scripts"):
        shutil.copytree(copy / part, elsewhere / part)
    for file in elsewhere.rglob("*.py"):
        file.touch()
    assert digest(elsewhere, "extract_latents") == digest(copy, "extract_latents")
