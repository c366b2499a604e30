from collections.abc import Callable
from typing import Any

import pytest

from vitscope.errors import VitscopeError


def refusal(ask: Callable[..., object], *given: Any, **named: Any) -> str:
    """Return the sentence, of one line, in which a call is refused."""
    with pytest.raises(VitscopeError) as caught:
        ask(*given, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)
