"""The numbers of a training for TensorBoard."""

import shutil
from contextlib import ExitStack
from pathlib import Path

from vitscope.training.unfinished import Row

EVENTS = "tensorboard"


class TrainingEvents(ExitStack):
    """Writes the numbers of each epoch for TensorBoard; a resumed run repeats none of them."""

    def __init__(self, directory: Path, done: int) -> None:
        super().__init__()
        folder = directory / EVENTS
        self._writer = None
        if not done:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._writer = self.enter_context(SummaryWriter(str(folder), purge_step=done + 1))

    def write(self, row: Row) -> None:
        if self._writer is None:
            return
        for name in row.keys() - {"epoch"}:
            self._writer.add_scalar(name, row[name], row["epoch"])
        self._writer.flush()
