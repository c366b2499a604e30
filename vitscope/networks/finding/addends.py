"""Tell which of its operands an operation adds up."""

from typing import Any, NamedTuple

from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Value
from vitscope.networks.finding.leaves import leaves


class Addends(NamedTuple):
    """Lists what an operation adds up, as indices of operands among all its arguments.

    `added` maps the index of each operand to whether it is added unchanged or, if False, times a
    constant. If a product is added too, `computed` has the index of one of its factors.
    """

    added: dict[int, bool]
    computed: tuple[int, ...] = ()


NOTHING = Addends({})


def flat_arguments(operation: Operation) -> list[Any]:
    """Return all arguments of an operation in one list, to which indices of operands refer."""
    return leaves((operation.args, operation.kwargs))


def addends(flow: Dataflow, operation: Operation) -> Addends:
    """Return what an operation adds up.

    An operation that only moves or scales a value adds up this one value.
    """
    name, leaves = operation.name, flat_arguments(operation)
    values = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Value)]
    if name in ("add", "sub", "rsub"):
        alpha = [*operation.args[2:3], operation.kwargs.get("alpha", 1)][0]
        plain = name == "add" and isinstance(alpha, int | float) and alpha == 1
        unchanged = {0: name != "rsub", 1: name == "rsub" or plain}
        return Addends({place: unchanged[place] for place in values if place in unchanged})
    if name == "_foreach_add":
        # This operation adds lists of tensors: accept lists of one tensor.
        return Addends({0: True, 1: not operation.kwargs}) if values == [0, 1] else NOTHING
    if name in ("addmm", "baddbmm", "addcmul", "addcdiv"):
        return _addends_of_product(operation, leaves, values)
    if name == "lerp":
        return Addends(dict.fromkeys(values, False)) if 2 not in values else NOTHING
    if name in ("mul", "div", "neg"):
        return Addends({values[0]: False}) if values == [0] or len(values) == 1 else NOTHING
    if name in ops.BATCH_NORMALIZATIONS:
        # A batch normalization that uses the batch's statistics does more than scale.
        by_batch = name == "native_batch_norm" and bool(operation.args[5])
        return Addends({0: False}) if values == [0] and not by_batch else NOTHING
    if name in ("sum", "mean"):
        return Addends({0: name == "sum"}) if summed_stack(flow, operation) else NOTHING
    if name in ("index_add", "scatter_add", "index_put"):
        return _addends_of_scatter(operation, leaves, values)
    if name == "where":
        return Addends(dict.fromkeys(values, True)) if values == [1, 2] else NOTHING
    if name == "copy":
        return Addends({1: True}) if 1 in values else NOTHING
    if name in ("stack", "cat", "write"):
        return Addends(dict.fromkeys(values, True))
    return Addends({values[0]: True}) if name in ops.MOVES and len(values) == 1 else NOTHING


def _addends_of_product(operation: Operation, leaves: list[Any], values: list[int]) -> Addends:
    """Return what an operation such as `addmm` adds up: a value and a product.

    A value times a constant, elementwise, counts as that value and not as a product.
    """
    factors = [place for place in values if place in (1, 2)]
    elementwise = operation.name.startswith("addc")
    added = {0: elementwise or operation.kwargs.get("beta", 1) == 1} if 0 in values else {}
    other = [leaves[place] for place in (1, 2) if place not in factors]
    scaled = factors in ([1], [2]) and isinstance(other[0], Constant)
    if elementwise and scaled and (operation.name == "addcmul" or factors == [1]):
        return Addends(added | {factors[0]: False})
    return Addends(added, tuple(factors[:1]))


def _addends_of_scatter(operation: Operation, leaves: list[Any], values: list[int]) -> Addends:
    """Return what is added at some indices; nothing if the indices depend on the images."""
    source = 3
    if operation.name == "index_put":
        source = len(leaves) - 2
        if leaves[-1] is not True:
            return NOTHING
    scaled = operation.kwargs.get("alpha", 1) != 1
    return NOTHING if scaled or {*values} - {0, source} else Addends(dict.fromkeys(values, True))


def summed_stack(flow: Dataflow, operation: Operation) -> list[int]:
    """Return the stack of values that an operation sums up, and the moves from there to the sum.

    Return an empty list if it sums up anything else, or if the other dimensions change places.
    """
    if operation.name not in ("sum", "mean") or len(operation.args) < 2:
        return []
    dims, within = operation.args[1], [operation.operands[0].operation]
    before = flow.operations[within[0]]
    over = [each % len(before.shape) for each in ([dims] if isinstance(dims, int) else dims or [])]
    while before.name == "permute":
        # einops moves the dimension of the stack to the end before it sums.
        order = [each % len(before.shape) for each in before.args[1]]
        over = [order[each] for each in over]
        others = [each for each in order if each not in over]
        if others != sorted(others):
            return []
        within.insert(0, before.operands[0].operation)
        before = flow.operations[within[0]]
    if before.name in ops.VIEWS and _splits_appended(flow, before, over):
        # Appended channels are split into those of each value.
        return [before.operands[0].operation, *within]
    if before.name not in ops.STACKS:
        return []
    along = [*before.args[1:2], before.kwargs.get("dim", 0)][0] % len(before.shape)
    if before.name == "cat" and any(flow.shape_of(v)[along] != 1 for v in before.operands):
        return []
    return within if over == [along] else []


def _splits_appended(flow: Dataflow, view: Operation, over: list[int]) -> bool:
    """Tell whether a view gives values that were appended to one another a dimension `over`."""
    (viewed,) = view.operands
    appending, shape = flow.operations[viewed.operation], flow.shape_of(viewed)
    if appending.name != "cat":
        return False
    along = [*appending.args[1:2], appending.kwargs.get("dim", 0)][0] % len(shape)
    each = {flow.shape_of(value) for value in appending.operands}
    split = (*shape[:along], len(appending.args[0]), *next(iter(each))[along:])
    return over == [along] and len(each) == 1 and view.shape == split
