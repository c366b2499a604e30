"""Recordings on the processor; tests/gpu has the same with CUDA graphs."""

import weakref

import pytest
import torch
from torch import Tensor

from tests.helpers.recording import record_here
from vitscope.networks.running import cuda_graphs
from vitscope.networks.running.cuda_graphs import WARM_UP, GraphRecording

CALLS = WARM_UP + 3


class Scale:
    """Work with a tensor of its own, which is changed where it is."""

    def __init__(self) -> None:
        self.factor = torch.ones(())
        self.recording = GraphRecording()

    def work(self, values: Tensor) -> tuple[Tensor, Tensor]:
        return self.factor * values, values.sum()

    def __call__(self, values: Tensor) -> tuple[Tensor, ...]:
        return self.recording.run(self.work, values)


def test_replays_do_the_work_with_what_is_there_and_given(monkeypatch: pytest.MonkeyPatch) -> None:
    replays, scale, found = record_here(monkeypatch), Scale(), []
    for number in range(CALLS):
        scale.factor.fill_(number)
        # Another shape is another recording.
        found += [scale(torch.full((size,), 2.0)) for size in (3, 5)]
    assert replays == [CALLS - WARM_UP] * 2
    for index, (scaled, total) in enumerate(found):
        number, size = index // 2, (3, 5)[index % 2]
        # Those of earlier calls are what they were.
        assert scaled.tolist() == [2.0 * number] * size
        assert total == 2 * size


def test_on_the_processor_nothing_is_recorded() -> None:
    scale = Scale()
    values = torch.ones(2)
    results = [scale(values) for _ in range(CALLS)]
    assert all(torch.equal(scaled, values) for scaled, _ in results)


def test_work_that_cannot_be_recorded_is_done_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    record_here(monkeypatch)

    def fail(work: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nSearch for it")

    monkeypatch.setattr(cuda_graphs, "record_graph", fail)
    said: list[str] = []
    kept = GraphRecording(said.append)
    found = [kept.run(lambda x: (2 * x,), torch.ones(1) * number) for number in range(CALLS)]
    assert [float(result) for (result,) in found] == [2.0 * number for number in range(CALLS)]
    assert said == [
        "runs one operation after the other, since no CUDA graph holds it: operation not permitted "
        "when stream is capturing"
    ]


def test_an_owner_is_gone_with_its_last_name() -> None:
    """Its memory, most of that of a GPU, does not wait until garbage is collected."""
    scale = Scale()
    scale(torch.ones(1))
    gone = weakref.ref(scale)
    del scale
    assert gone() is None
