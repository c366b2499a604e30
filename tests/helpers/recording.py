"""Work that is recorded on the processor, as it would be on a GPU, to test all but CUDA itself."""

from collections.abc import Callable
from typing import Any

import pytest

from vitscope.networks.running import cuda_graphs


def record_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record what runs on the processor; return the number of replays of each recording.

    What is recorded reads its inputs and writes its results where a CUDA graph would.
    """
    replays: list[int] = []

    def record(work: Callable[[], tuple[Any, ...]]) -> tuple[Callable[[], None], tuple[Any, ...]]:
        outputs, number = work(), len(replays)
        replays.append(0)

        def replay() -> None:
            replays[number] += 1
            # Unlike a recording by CUDA, this one has done the work of the first replay.
            if replays[number] > 1:
                for kept, new in zip(outputs, work(), strict=True):
                    kept.copy_(new)

        return replay, outputs

    monkeypatch.setattr(cuda_graphs, "RECORDED_ON", ("cpu",))
    monkeypatch.setattr(cuda_graphs, "record_graph", record)
    return replays
