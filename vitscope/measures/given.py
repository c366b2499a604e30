"""The inputs that jobs give to a measure: objects, not paths, so that any caller can make them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from vitscope.errors import VitscopeError

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch import Tensor, nn

    from vitscope.corruptions.corrupted_images import CorruptedImages
    from vitscope.data.split import Split
    from vitscope.files.tensors import TensorFile
    from vitscope.networks.finding.cut_points import CutPoint
    from vitscope.networks.running.extraction import HeldMaps
    from vitscope.progress import Say
    from vitscope.training.batches import AugmentedImages

T = TypeVar("T")
# Feature maps (images, channels, height, width) at cut points, from a file or from memory.
Latents: TypeAlias = "TensorFile | HeldMaps"


@dataclass(frozen=True)
class OnLatents:
    """Gives a measure the latents of some images.

    `first_image` is the index of the first of them among all measured images.
    """

    latents: Latents
    first_image: int
    threads: int = 1


@dataclass(frozen=True)
class OnPredictions:
    """Gives a measure the predictions of a model for images of a split."""

    model: str
    predictions: "pd.DataFrame"
    images: "Split"


@dataclass(frozen=True)
class OnModel:
    """Gives a measure a model, the images to measure it on, and what else the measure reads."""

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
    alike: "AugmentedImages | None" = None
    # A measure adds a sentence here for each reason to doubt its values.
    warnings: list[str] = field(default_factory=list)

    def batches(self, rows: Sequence[int], size: int | None = None) -> "Iterator[Tensor]":
        """Yield the images at `rows` of the split, in batches and normalized for the model.

        `size` is the number of images per batch; None for `batch_size`.
        """
        mean, std = self.settings["mean"], self.settings["std"]
        return self.images.batches(rows, size or self.batch_size, mean, std)


@dataclass(frozen=True)
class OnLine:
    """Gives a measure of networks of one shape the first, as a model, and the others with names.

    `augmented` are training images of the first, if the measure takes any.
    """

    first: OnModel
    others: Sequence[str]
    networks: "Sequence[nn.Module]"
    augmented: "AugmentedImages | None" = None


@dataclass(frozen=True)
class OnLoss:
    """Gives a measure a model and the model's augmented training images, with soft targets."""

    network: "nn.Module"
    images: "AugmentedImages"
    device: "torch.device"
    cut_points: "Sequence[CutPoint]" = ()
    say: "Say" = print
    # The training images before they were augmented.
    drawn_from: "Split | None" = None


@dataclass(frozen=True)
class OnNetwork:
    """Gives a measure a model with its weights but no images; `settings` describe the input."""

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
    """Gives a measure the history of a model's training or, if there is none, the snapshots."""

    model: str
    history: "pd.DataFrame | None" = None
    snapshots: "Sequence[TensorFile]" = ()


@dataclass(frozen=True)
class Parts:
    """Gives a merge the tables of a model's parts, in order, and the table of its cut points."""

    model: str
    tables: "Iterator[pd.DataFrame]"
    cut_points: "pd.DataFrame"
