from collections.abc import Iterable
from importlib.metadata import packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HIDE = """
import sys
class Hidden:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
"""


def needed_by(requirements: Iterable[str]) -> set[str]:
    """Return the names of these packages and of all that they need here, and those need."""
    reached: set[tuple[str, frozenset[str]]] = set()
    pending = [Requirement(text) for text in requirements]
    while pending:
        requirement = pending.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        # Builds of torch for a GPU bring packages of their own, and other builds do not.
        if (name, extras) in reached or name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        reached.add((name, extras))
        for need in map(Requirement, requires(name) or []):
            evaluated = ({"extra": extra} for extra in extras or {""})
            if need.marker is None or any(map(need.marker.evaluate, evaluated)):
                pending.append(need)
    return {name for name, _ in reached}


def hiding_all_but(available: set[str]) -> str:
    """Return code by which Python finds only the modules of these packages, and its own."""
    hidden = [
        module
        for module, owners in packages_distributions().items()
        if not available & set(map(canonicalize_name, owners)) and module != "vitscope"
    ]
    return HIDE.format(hidden=hidden)
