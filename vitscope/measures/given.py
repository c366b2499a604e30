"""What jobs give to a measure: objects, not paths, so that any caller can make them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vitscope.errors import VitscopeError

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch import Tensor, nn

    from vitscope.corruptions.corrupted import CorruptedImages
    from vitscope.data.split import Split
    from vitscope.files.arrays import Array
    from vitscope.files.tensors import TensorFile
    from vitscope.networks.finding.cut_points import CutPoint
    from vitscope.progress import Say
    from vitscope.training.batches import Augmented

T = TypeVar("T")


class Latents(Protocol):
    """Feature maps (images, channels, height, width) at cut points: in a file, or in memory."""

    path: Any

    @property
    def names(self) -> list[str]:
        """The cut points, in their order."""

    def dtype(self, name: str) -> str:
        """Return the type of maps, as safetensors calls it."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of maps."""

    def on_gpu(self, name: str) -> "Tensor | None":
        """Return maps where they lie, if that is a GPU: for a measure that takes these."""

    def mapped(self, name: str) -> "Array":
        """Return maps as they are stored; who reads them has to `check` them."""

    def read(self, name: str, first_row: int, rows: "Array") -> "Array":
        """Return maps from `first_row` on, as many as `rows`: copied there if from a file."""

    def check(self, name: str, total: int) -> None:
        """Refuse maps whose checksums do not add up."""

    def verify(self, *names: str) -> None:
        """Read maps, or all, and refuse what is not what was written."""


@dataclass(frozen=True)
class OnLatents:
    """The latents of some images; `first_image` is the position of the first among all measured."""

    latents: Latents
    first_image: int
    threads: int = 1


@dataclass(frozen=True)
class OnPredictions:
    """What a model says of images of a split."""

    model: str
    predictions: "pd.DataFrame"
    images: "Split"


@dataclass(frozen=True)
class OnModel:
    """A model and the images that it is measured on; further inputs by what a measure reads."""

    model: str
    network: "nn.Module"
    cut_points: "Sequence[CutPoint]"
    images: "Split"
    device: "torch.device"
    settings: dict[str, Any]
    batch_size: int
    blocks: "pd.DataFrame | None" = None
    predictions: "pd.DataFrame | None" = None
    corrupted: "Sequence[CorruptedImages]" = ()
    alike: "Augmented | None" = None
    # What a measure finds that makes its values doubtful.
    warnings: list[str] = field(default_factory=list)

    def batches(self, rows: Sequence[int]) -> "Iterator[Tensor]":
        """Yield some images in batches, as the model expects them."""
        mean, std = self.settings["mean"], self.settings["std"]
        return self.images.batches(rows, self.batch_size, mean, std)


@dataclass(frozen=True)
class OnLoss:
    """A model and augmented images of its training, soft targets with them."""

    network: "nn.Module"
    images: "Augmented"
    device: "torch.device"
    cut_points: "Sequence[CutPoint]" = ()
    # Takes a line now and then that says how far the work is.
    say: "Say" = print


@dataclass(frozen=True)
class OnNetwork:
    """A model with its weights; `settings` say which images it takes, and there are none."""

    model: str
    network: "nn.Module"
    settings: dict[str, Any]

    def find(self, find: "Callable[[nn.Module, dict[str, Any]], T]") -> T:
        """Return what a function finds in the network; an error names the model."""
        try:
            return find(self.network, self.settings)
        except VitscopeError as error:
            raise VitscopeError(f"models.{self.model}: {error}") from error


@dataclass(frozen=True)
class OnWeights:
    """The weights of a model in training: recorded in its history, or its snapshots in order."""

    model: str
    history: "pd.DataFrame | None" = None
    snapshots: "Sequence[TensorFile]" = ()


@dataclass(frozen=True)
class Parts:
    """What parts of a model measured, in their order, and its cut points, a row each.

    A measure that is not of cut points has none.
    """

    model: str
    tables: "Iterator[pd.DataFrame]"
    cut_points: "pd.DataFrame"
