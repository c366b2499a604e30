"""Tell whether a branch attends: whether positions weigh each other by products of values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.branches import factors_of, multiplies_values
from vitscope.networks.finding.dataflow import Dataflow, Operation, Value
from vitscope.networks.finding.positions import Positions, PositionTracer, varies_along


@dataclass(frozen=True)
class Attending:
    """Tells attention from other products of two values that both depend on the images.

    A mixture of experts sums over experts, a gate over channels, and a context of the whole image
    or a covariance of channels has no positions left: none of these is attention.
    """

    flow: Dataflow
    tracer: PositionTracer

    def by_softmax(self, branch: Sequence[int]) -> bool:
        """Tell whether a product is weighed by a softmax, and multiplied again."""
        fused = any(_is_fused_attention_of_values(self.flow.operations[i]) for i in branch)
        return fused or any(weighed for _, _, weighed in self._pairs(branch))

    def by_products(self, branch: Sequence[int]) -> bool:
        """Tell whether products sum over positions, and leave values at positions.

        One product may do both, or two that follow one another: keys times values, and queries
        times their product.
        """
        following = {each for first, second, _ in self._pairs(branch) for each in (first, second)}
        return any(
            self._sums_over_positions(each)
            and (each in following or self._stays_at_positions(each))
            for each in self._products(branch)
        )

    def _products(self, branch: Sequence[int]) -> list[int]:
        return [index for index in branch if multiplies_values(self.flow.operations[index])]

    def _pairs(self, branch: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
        """Yield products that take the results of others, without a layer between the two.

        The third says whether a softmax lies between them. A layer behind the softmax, as one that
        mixes heads, is passed.
        """
        inside = {*branch}
        for first in self._products(branch):
            waiting = [(first, False)]
            seen = {*waiting}
            while waiting:
                index, weighed = waiting.pop()
                for user in self.flow.users.get(index, []):
                    operation = self.flow.operations[user]
                    state = user, weighed or operation.name in ops.SOFTMAXES
                    if user not in inside or state in seen:
                        continue
                    seen.add(state)
                    if multiplies_values(operation):
                        yield first, *state
                    elif state[1] or operation.name not in ops.PRODUCTS | ops.CONVOLUTIONS:
                        waiting.append(state)

    def _factors(self, product: int) -> list[tuple[Value, int, Positions | None]]:
        """Return both factors, the dimension of each that the product sums over, and positions."""
        factors = zip(factors_of(self.flow.operations[product]), (-1, -2), strict=True)
        return [(value, summed, self.tracer.positions(value)) for value, summed in factors]

    def _sums_over_positions(self, product: int) -> bool:
        """Tell whether a product sums over positions; if nobody can tell, assume that it does."""
        factors = self._factors(product)
        if all(positions is None for _, _, positions in factors):
            return True
        return any(
            self._is_unfolded(value) or (positions is not None and _varies(positions, summed))
            for value, summed, positions in factors
        )

    def _stays_at_positions(self, product: int) -> bool:
        """Tell whether a product leaves values at several positions."""
        for _, summed, positions in self._factors(product):
            if positions is None:
                return True
            dimensions = range(-positions.row.ndim, 0)
            if any(_varies(positions, each) for each in dimensions if each != summed):
                return True
        return False

    def _is_unfolded(self, value: Value) -> bool:
        """Tell whether a value holds the neighbours of each position, which `unfold` put there."""
        while True:
            operation = self.flow.operations[value.operation]
            if operation.name in ops.UNFOLDING:
                return True
            if operation.name not in ops.MOVES or len(operation.operands) != 1:
                return False
            (value,) = operation.operands


def _is_fused_attention_of_values(operation: Operation) -> bool:
    fused = ops.is_fused_attention(operation.name)
    return fused and all(isinstance(each, Value) for each in operation.args[:2])


def _varies(positions: Positions, dimension: int) -> bool:
    return any(varies_along(each, dimension) for each in (positions.row, positions.column))
