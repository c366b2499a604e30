"""A digest of the code that a script reaches, so that a workflow knows when to run it again."""

import hashlib
from functools import cache
from pathlib import Path

from vitscope.files import imports

PACKAGE = Path(__file__).parents[1]


def _module_file(name: str) -> Path | None:
    parts = name.split(".")
    return imports.module_file(PACKAGE.joinpath(*parts[1:])) if parts[0] == PACKAGE.name else None


@cache
def reached(script: Path, *modules: str) -> dict[str, Path]:
    """Return every module of vitscope that a script, or one of `modules`, imports, and its file.

    Modules that are imported by a computed name are not seen in the source: name them.
    """
    return imports.reached((*imports.imported(script, script.stem), *modules), _module_file)


@cache
def code_digest(script: Path, *modules: str) -> str:
    """Digest a script and every module that it reaches, as `reached` finds them."""
    found = reached(script, *modules)
    digest = hashlib.sha256(script.read_bytes())
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + found[name].read_bytes() + b"\0")
    return digest.hexdigest()[:16]
