"""Events of a training, as TensorBoard itself reads them."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from vitscope.training.loop import EVENTS, Events


def read_events(folder: Path, name: str) -> list[tuple[int, float]]:
    found = EventAccumulator(str(folder / EVENTS), purge_orphaned_data=True).Reload()
    return [(event.step, event.value) for event in found.Scalars(name)]


def write_events(folder: Path, done: int, losses: dict[int, float]) -> None:
    with Events(folder, done) as events:
        for epoch, loss in losses.items():
            events.write({"epoch": epoch, "loss": loss})


def test_each_number_of_an_epoch_is_an_event(tmp_path: Path) -> None:
    write_events(tmp_path, 0, {1: 0.5, 2: 0.25})
    assert read_events(tmp_path, "loss") == [(1, 0.5), (2, 0.25)]


def test_an_epoch_that_is_done_again_stands_there_once(tmp_path: Path) -> None:
    write_events(tmp_path, 0, {1: 0.5, 2: 0.25, 3: 4.0})
    write_events(tmp_path, 2, {3: 0.125})
    assert read_events(tmp_path, "loss") == [(1, 0.5), (2, 0.25), (3, 0.125)]


def test_a_training_that_begins_anew_has_events_of_its_own(tmp_path: Path) -> None:
    write_events(tmp_path, 0, {1: 0.5, 2: 0.25})
    write_events(tmp_path, 0, {1: 8.0})
    assert read_events(tmp_path, "loss") == [(1, 8.0)]
