"""Measure what vision networks do: in a notebook, and as a workflow from checkpoint to figure."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitscope.scopes.blocks import Block, blocks
    from vitscope.scopes.bundled import bundled
    from vitscope.scopes.comparing import Comparison, compare
    from vitscope.scopes.made import Made, read
    from vitscope.scopes.scope import Scope, look
    from vitscope.scopes.watching import Watch, watch

__version__ = "0.2.0"

# Public names and their modules, imported on first use, since importing torch takes a second.
_PLACES = {
    "Block": "vitscope.scopes.blocks",
    "blocks": "vitscope.scopes.blocks",
    "bundled": "vitscope.scopes.bundled",
    "Comparison": "vitscope.scopes.comparing",
    "compare": "vitscope.scopes.comparing",
    "look": "vitscope.scopes.scope",
    "Made": "vitscope.scopes.made",
    "read": "vitscope.scopes.made",
    "Scope": "vitscope.scopes.scope",
    "Watch": "vitscope.scopes.watching",
    "watch": "vitscope.scopes.watching",
}
__all__ = [
    "Block",
    "Comparison",
    "Made",
    "Scope",
    "Watch",
    "__version__",
    "blocks",
    "bundled",
    "compare",
    "look",
    "read",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'vitscope' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
