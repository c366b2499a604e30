"""What jobs give to a measure: objects, not paths, so that any caller can make them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from vitscope.errors import VitscopeError

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch import Tensor, nn

    from vitscope.corruptions.corrupted import CorruptedImages
    from vitscope.data.split import Split
    from vitscope.files.tensors import TensorFile
    from vitscope.networks.finding.cut_points import CutPoint
    from vitscope.networks.running.latents import HeldMaps
    from vitscope.progress import Say
    from vitscope.training.batches import Augmented

T = TypeVar("T")
# Feature maps (images, channels, height, width) at cut points, from a file or from memory.
Latents: TypeAlias = "TensorFile | HeldMaps"


@dataclass(frozen=True)
class OnLatents:
    """Gives latents of some images; `first_image` is the position of the first among all."""

    latents: Latents
    first_image: int
    threads: int = 1


@dataclass(frozen=True)
class OnPredictions:
    """Gives what a model predicts for the images of a split."""

    model: str
    predictions: "pd.DataFrame"
    images: "Split"


@dataclass(frozen=True)
class OnModel:
    """Gives a model and the images it is measured on, and further inputs that a measure reads."""

    model: str
    network: "nn.Module"
    cut_points: "Sequence[CutPoint]"
    images: "Split"
    device: "torch.device"
    settings: dict[str, Any]
    batch_size: int
    blocks: "pd.DataFrame"
    predictions: "pd.DataFrame | None" = None
    corrupted: "Sequence[CorruptedImages]" = ()
    alike: "Augmented | None" = None
    # A measure adds a sentence for each thing that makes its values doubtful.
    warnings: list[str] = field(default_factory=list)

    def batches(self, rows: Sequence[int], size: int | None = None) -> "Iterator[Tensor]":
        """Yield some images in batches of a `size`, or the usual one, as the model expects them."""
        mean, std = self.settings["mean"], self.settings["std"]
        return self.images.batches(rows, size or self.batch_size, mean, std)


@dataclass(frozen=True)
class OnLoss:
    """Gives a model and augmented images of its training, with soft targets."""

    network: "nn.Module"
    images: "Augmented"
    device: "torch.device"
    cut_points: "Sequence[CutPoint]" = ()
    say: "Say" = print
    # The training images before they were augmented.
    drawn_from: "Split | None" = None


@dataclass(frozen=True)
class OnNetwork:
    """Gives a model with its weights but no images; `settings` say which images it would take."""

    model: str
    network: "nn.Module"
    settings: dict[str, Any]

    def find(self, find: "Callable[[nn.Module, dict[str, Any]], T]") -> T:
        """Return what a function finds in the network; errors name the model."""
        try:
            return find(self.network, self.settings)
        except VitscopeError as error:
            raise VitscopeError(f"models.{self.model}: {error}") from error


@dataclass(frozen=True)
class OnWeights:
    """Gives the weights of a model in training, from its history or its snapshots in order."""

    model: str
    history: "pd.DataFrame | None" = None
    snapshots: "Sequence[TensorFile]" = ()


@dataclass(frozen=True)
class Parts:
    """Gives the tables that parts of a model measured, in order, and its cut points, a row each."""

    model: str
    tables: "Iterator[pd.DataFrame]"
    cut_points: "pd.DataFrame"
