"""How much memory the feature maps of a network take, counted while it runs."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, UntypedStorage
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

from vitscope.networks.finding.modes import Args, Kwargs, OperationMode
from vitscope.networks.finding.operations import FLEX_ATTENTION, plain_name


class ActivationCounter(OperationMode):
    """Counts the bytes that operations return: all of them, and the most in memory at once.

    Views, and what is changed in place, take no memory of their own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made = self._peak = 0
        self._live: list[tuple[StorageWeakRef, int]] = []

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation, and count what it returns."""
        if plain_name(function) == FLEX_ATTENTION:
            return self._run_flex_attention(args, kwargs)
        given = {storage._cdata for storage in _storages((args, kwargs))}
        result = function(*args, **kwargs)
        for storage in _storages(result):
            if storage._cdata not in given:
                self._made += storage.nbytes()
                reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self._live.append((reference, storage.nbytes()))
        self._peak = max(self._peak, self._in_memory())
        return result

    def _run_flex_attention(self, args: Args, kwargs: Kwargs) -> Any:
        """Run FlexAttention step by step, as torch does on a CPU: other counters need it too."""
        from torch._higher_order_ops.flex_attention import sdpa_dense

        with self:
            return sdpa_dense(*args, **kwargs)

    def take(self) -> tuple[int, int]:
        """Return the bytes made and the most in memory at once, and start to count anew."""
        taken = self._made, self._peak
        self._made, self._peak = 0, self._in_memory()
        return taken

    def _in_memory(self) -> int:
        self._live = [live for live in self._live if not live[0].expired()]  # type: ignore[no-untyped-call]
        return sum(size for _, size in self._live)


def _storages(values: Any) -> Iterator[UntypedStorage]:
    for value in tree_leaves(values):
        if isinstance(value, Tensor):
            yield value.untyped_storage()
