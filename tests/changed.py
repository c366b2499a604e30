"""Print the files of tests that a change reaches: `make test CHANGED=1`, or `CHANGED=REVISION`.

The digests of jobs know which definitions a function reaches; here they tell which of those that
have changed a file of tests reaches, and the fixtures that it names. What is imported by a computed
name, as measures are by the registry, is not followed, so that tests of all measures run without
CHANGED alone. A file reaches the tests of its folder, one without code also those that name it.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from vitscope.files import python_code
from vitscope.package_data import ROOT
from vitscope.planning import code

TESTS = ROOT / "tests"
# Where the branch of a change began.
UPSTREAM = "origin/HEAD"
# What no module imports, and the tests that start it.
WORKFLOW = ("Snakefile", "rules", "scripts", "workflow", "profiles")
OF_WORKFLOW = ("runs", "planning", "scripts")
FIXTURE = re.compile(r"^@pytest\.fixture(.*)\ndef (\w+)", re.MULTILINE)


def main(revision: str) -> None:
    code.places()[TESTS.name] = [TESTS]
    python_code.found_definitions.keep_in(ROOT / ".snakemake" / "tests-definitions.json")
    since = git("merge-base", "HEAD", UPSTREAM).strip() if revision == "1" else revision
    changed = {*changed_files(since)}
    names = {name for path in changed for name in changed_names(path, since)}
    reached = [
        str(test.relative_to(ROOT))
        for test in sorted(TESTS.rglob("test_*.py"))
        if is_reached(test, names, changed)
    ]
    print(f"{len(changed)} files changed, {len(reached)} of tests are reached.", file=sys.stderr)
    print(*reached)


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def changed_files(since: str) -> Iterator[Path]:
    """Yield what differs from a revision, files that git does not know yet among them."""
    names = git("diff", "--name-only", "-z", since, "--")
    names += git("ls-files", "--others", "--exclude-standard", "-z")
    yield from (ROOT / name for name in names.split("\0") if name)


def changed_names(path: Path, since: str) -> Iterator[tuple[str, str]]:
    """Yield what has changed in a module, each name with the module."""
    if path.suffix != ".py" or not path.is_file():
        return
    module = module_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    place = str(path.relative_to(ROOT))
    known = git("ls-tree", "--name-only", since, "--", place)
    before = git("show", f"{since}:{place}").encode() if known else b""
    old, new = (
        {each.digest: each for each in python_code.definitions(source, package, place)}
        for source in (before, path.read_bytes())
    )
    for digest in old.keys() ^ new.keys():
        for name in (new | old)[digest].names or (code.LOADED,):
            yield module, name


def is_reached(test: Path, names: set[tuple[str, str]], changed: Iterable[Path]) -> bool:
    text = test.read_text(encoding="utf-8")
    reached = code.names_reached_from([(module_of(test), code.ALL, ""), *fixtures_of(test, text)])
    return not names.isdisjoint((module, name) for module, name, _ in reached) or any(
        concerns(test, text, path) for path in changed
    )


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def fixtures_of(test: Path, text: str) -> Iterator[code.Name]:
    """Yield the fixtures above a test that it names."""
    words = {*re.findall(r"\w+", text)}
    for folder in test.relative_to(ROOT).parents:
        conftest = ROOT / folder / "conftest.py"
        for options, name in fixtures_in(conftest):
            if name in words or "autouse" in options:
                yield module_of(conftest), name, ""


@cache
def fixtures_in(conftest: Path) -> list[tuple[str, str]]:
    """Return the fixtures in a file, each with its options."""
    return FIXTURE.findall(conftest.read_text(encoding="utf-8")) if conftest.is_file() else []


def concerns(test: Path, text: str, changed: Path) -> bool:
    """Tell whether a test is about a file that no module imports, by its place and its name."""
    top, *folders = changed.relative_to(ROOT).parts[:-1] or ("",)
    name = changed.name
    if top in WORKFLOW or name in WORKFLOW:
        return test.relative_to(TESTS).parts[0] in OF_WORKFLOW
    if top == code.PACKAGE.name and test.parent == TESTS.joinpath(*folders):
        return True
    return name in text and not (name.endswith(".py") and top in (TESTS.name, code.PACKAGE.name))


if __name__ == "__main__":
    main(*sys.argv[1:])
