"""What a user reads where something is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from vitscope.errors import VitscopeError


def refusal(function: Callable[..., object], *arguments: Any, **keywords: Any) -> str:
    """Call a function that has to refuse, and return its sentence."""
    with pytest.raises(VitscopeError) as caught:
        function(*arguments, **keywords)
    return str(caught.value)
