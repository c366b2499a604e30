"""Convert plain values, as settings and JSON have them, to annotated types."""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from inspect import signature
from itertools import repeat
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
# The plain types that settings may have for a float or a tuple.
MADE_FROM: dict[Any, Any] = {float: (int, float), tuple: (list, tuple)}
_fields = cache(get_type_hints)


def typed(value: Any, kind: type[T]) -> T:
    """Convert a plain value to the type `kind`, and the values inside it to their own types.

    Nothing is checked here: settings were checked against their schema, and all other values were
    written by `asdict`. Keys that a dataclass lacks are dropped, since the record of a run may be
    from an older version.
    """
    found: T = _convert_to_typed(value, kind)
    return found


def call_typed(function: Callable[..., T], *given: object, values: Mapping[str, Any]) -> T:
    """Call a function with plain values; convert values for parameters that are dataclasses."""
    kinds = {key: each.annotation for key, each in signature(function).parameters.items()}
    plain = {key for key in values if not is_dataclass(kinds.get(key))}
    made = {key: each if key in plain else typed(each, kinds[key]) for key, each in values.items()}
    return function(*given, **made)


def _convert_to_typed(value: Any, kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        given = [(key, type_) for key, type_ in _fields(kind).items() if key in value]
        return kind(**{key: _convert_to_typed(value[key], type_) for key, type_ in given})
    if kind is float:
        return float(value)
    if origin is list:
        return [_convert_to_typed(each, inner[0]) for each in value]
    if origin is tuple:
        return tuple(map(_convert_to_typed, value, repeat(inner[0]) if inner[-1] is ... else inner))
    if origin is dict:
        return {key: _convert_to_typed(each, inner[1]) for key, each in value.items()}
    if origin in (Union, UnionType):
        return _convert_to_typed(
            value, next((each for each in inner if _can_be_typed_as(value, each)), Any)
        )
    return value


def _can_be_typed_as(value: Any, kind: Any) -> bool:
    """Tell whether a plain value can be converted to a type."""
    origin = get_origin(kind) or kind
    if origin is Literal:
        return value in get_args(kind)
    return isinstance(value, dict if is_dataclass(kind) else MADE_FROM.get(origin, origin))
