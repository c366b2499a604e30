"""How much memory the feature maps of a network take, counted while it runs."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, UntypedStorage
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class ActivationCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of what operations return, all of them and those in memory at once.

    Views, and what is changed in place, take no memory of their own.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._made = self._peak = 0
        self._live: list[tuple[StorageWeakRef, int]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operation, and count what it returns."""
        kwargs = kwargs or {}
        given = {storage._cdata for storage in _storages((args, kwargs))}
        result = func(*args, **kwargs)
        for storage in _storages(result):
            if storage._cdata not in given:
                self._made += storage.nbytes()
                reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self._live.append((reference, storage.nbytes()))
        self._peak = max(self._peak, self._in_memory())
        return result

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
