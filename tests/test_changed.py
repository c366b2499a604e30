from collections.abc import Callable
from pathlib import Path

import pytest

from tests import changed
from tests.changed import ROOT, TESTS, changed_files, changed_names, is_reached
from vitscope.planning import code

COMPUTE = "vitscope.measures.feature_variance.compute"


@pytest.fixture(scope="module", autouse=True)
def with_tests() -> None:
    code.places()[TESTS.name] = [TESTS]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one module and a text, both committed."""
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    (tmp_path / "module.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    (tmp_path / "page.md").write_text("A page.\n")
    changed.git("init", "--quiet")
    changed.git("add", "--all")
    who = ("-c", "user.name=who", "-c", "user.email=who@example.org")
    changed.git(*who, "commit", "--quiet", "--message", "all")
    return tmp_path


def edit(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text()))


def test_a_change_is_what_differs_from_a_revision(repository: Path) -> None:
    assert [*changed_files("HEAD")] == []
    edit(repository / "page.md", str.upper)
    (repository / "new.py").touch()
    assert {*changed_files("HEAD")} == {repository / "page.md", repository / "new.py"}


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("return 2", "return 3", {"two"}),
        ("return 2", "return 2  # A comment changes nothing.", set()),
        ("def two", "def three", {"two", "three"}),
        ("def two", "print()\n\n\ndef two", {code.LOADED}),
        ("    return 2", "    return one()", {"two"}),
    ],
)
def test_definitions_that_changed_are_named(
    repository: Path, old: str, new: str, names: set[str]
) -> None:
    edit(repository / "module.py", lambda text: text.replace(old, new))
    found = {*changed_names(repository / "module.py", "HEAD")}
    assert found == {("module", name) for name in names}


def test_all_of_a_new_module_has_changed(repository: Path) -> None:
    (repository / "new.py").write_text("A = 1\nB = 2\n")
    assert {*changed_names(repository / "new.py", "HEAD")} == {("new", "A"), ("new", "B")}


@pytest.mark.parametrize(
    ("test", "name", "expected"),
    [
        # It calls the function itself, or what does.
        ("measures/feature_variance/test_compute.py", "measure_feature_variance", True),
        ("measures/cka/test_compute.py", "measure_feature_variance", False),
        ("files/test_whole.py", "measure_feature_variance", False),
        # What runs as a module is imported reaches all who import it.
        ("measures/feature_variance/test_compute.py", code.LOADED, True),
    ],
)
def test_what_a_definition_reaches(test: str, name: str, expected: bool) -> None:
    assert is_reached(TESTS / test, {(COMPUTE, name)}, set()) is expected


def test_a_fixture_reaches_the_tests_that_name_it() -> None:
    changes = {("tests.conftest", "at_hand")}
    assert is_reached(TESTS / "runs" / "test_rebuilds.py", changes, set())
    assert not is_reached(TESTS / "measures" / "cka" / "test_compute.py", changes, set())


@pytest.mark.parametrize(
    ("test", "file", "expected"),
    [
        ("measures/cka/test_compute.py", "vitscope/measures/cka/caption_cka.rst", True),
        ("measures/cka/test_compute.py", "vitscope/measures/probe/vectors.py", False),
        ("runs/test_rebuilds.py", "rules/measures.smk", True),
        ("measures/cka/test_compute.py", "rules/measures.smk", False),
        ("planning/test_on_paper.py", "docs/scale.md", True),
        ("runs/test_rebuilds.py", "Snakefile", True),
    ],
)
def test_a_file_reaches_tests_by_its_place_and_its_name(
    test: str, file: str, expected: bool
) -> None:
    assert is_reached(TESTS / test, set(), {ROOT / file}) is expected
