"""The panels beside a video: attention maps of heads, attention rollout, or colours of tokens."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from PIL import Image
from PIL.Image import Resampling
from torch import Tensor, nn

from vitscope.drawing.looks import OVERLAY_ALPHA
from vitscope.files.arrays import Array
from vitscope.image_size import height_and_width
from vitscope.measures.attention.maps import AttentionMaps, attention_for_maps, maps_of
from vitscope.measures.attention_tokens import attention_in
from vitscope.measures.rollout import Rollout
from vitscope.measures.tokens.measure import FRAMES_TOGETHER, TokenPcaSettings
from vitscope.measures.tokens.pca import Components, choose_pca_point, read_pca_map
from vitscope.measures.tokens.show_pca import BACKGROUND, OUTLIER, component_range, in_colours
from vitscope.networks.attention.reading import Attention
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.video.sheet import Scale, Sheet


@dataclass(frozen=True)
class Subject:
    """A network with its `settings`; `taking` says how to preprocess pictures for it."""

    model: str
    label: str
    network: nn.Module
    cut_points: Sequence[CutPoint]
    blocks: pd.DataFrame
    settings: Mapping[str, Any]
    taking: Mapping[str, Any]
    device: torch.device

    def attention(self) -> tuple[list[Attention], list[str]]:
        where = f"models.{self.model}"
        return attention_in(self.network, self.settings, self.cut_points, where)


class Seen(NamedTuple):
    """The maps of a frame, their place in the network (`of`), and the query's place in the image.

    The place of the query is (down, across), as shares of the height and width.
    """

    of: str
    maps: list[Array]
    query: tuple[float, float] | None = None


class View(ABC):
    """Draws the `panels` beside a video; first sees up to `LOOKS_AHEAD` frames, spread over it."""

    LOOKS_AHEAD: ClassVar[int] = 0

    title: str
    panels: Sequence[str]
    warnings: Sequence[str] = ()

    def look_ahead(self, images: Sequence[Tensor]) -> None:  # noqa: B027
        """Compute from some frames what all frames share, if anything."""

    @abstractmethod
    def see(self, image: Tensor) -> Seen:
        """Return the maps of a frame, which is preprocessed for the network."""

    @abstractmethod
    def scale(self, first: Seen) -> Scale | str:
        """Choose the scale of all frames from the first one, and return it."""

    @abstractmethod
    def draw(self, sheet: Sheet, shown: Image.Image, seen: Seen) -> list[Image.Image]:
        """Return the panels beside the frame `shown`."""


class HeadsView(View):
    """Maps of all or some heads of one attention; the first frame sets the scale of brightness."""

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        attentions, self.warnings = subject.attention()
        attention = attentions[
            attention_for_maps(attentions, settings["block"], subject.model, where)
        ]
        self._network, size = subject.network, subject.settings["image_size"]
        self._size = height_and_width(size)
        self._heads = settings["heads"] or [*range(attention.heads)]
        self._brightest = settings["brightest"]
        self._maps = AttentionMaps(subject.model, size, attention, where)
        self._maps.request_heads(settings["query"], self._heads)
        self.title = attention.name
        self.panels = [f"head {head}" for head in self._heads]

    def see(self, image: Tensor) -> Seen:
        maps, _ = maps_of(self._network, self._maps, image)
        found = {each["head"]: each for each in maps}
        shown = [found[head] for head in self._heads]
        grids = [np.reshape(each["weights"], (each["height"], each["width"])) for each in shown]
        row, column = shown[0]["query_row"], shown[0]["query_column"]
        query = None if row is None else (row / self._size[0], column / self._size[1])
        return Seen(shown[0]["of"], grids, query)

    def scale(self, first: Seen) -> Scale:
        largest = 100 * max(float(each.max()) for each in first.maps)
        self._brightest = self._brightest or largest or 100.0
        return Scale("0", f"{self._brightest:.3g} or more", "attention (%)")

    def draw(self, sheet: Sheet, shown: Image.Image, seen: Seen) -> list[Image.Image]:
        return [sheet.shade(each / (self._brightest / 100)) for each in seen.maps]


class RolloutView(View):
    """Attention rollout, divided by its largest value, alone and over the video."""

    panels = ("rollout", "over the video")

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        attentions, self.warnings = subject.attention()
        self._rollout = Rollout(attentions)
        self._network, self._fusion = subject.network, settings["fusion"]
        self.title = f"rollout, {self._fusion} of heads"

    def see(self, image: Tensor) -> Seen:
        self._rollout.run(self._network, image, self._fusion)
        of, values = self._rollout.result()
        return Seen(of, [values.double().reshape(self._rollout.grid).numpy()])

    def scale(self, first: Seen) -> Scale:
        return Scale("0", "1", "rollout over its largest")

    def draw(self, sheet: Sheet, shown: Image.Image, seen: Seen) -> list[Image.Image]:
        rollout = sheet.shade(seen.maps[0])
        return [rollout, Image.blend(shown, rollout, OVERLAY_ALPHA)]


class ComponentsView(View):
    """The principal components of tokens as colours, fitted to frames from all over the video."""

    LOOKS_AHEAD = FRAMES_TOGETHER

    title = "components of tokens"
    panels = ("tokens", "over the video")

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        self._subject, self._settings = subject, TokenPcaSettings(**settings["token_pca"])
        wanted = self._settings.cut_point
        self._point = choose_pca_point(subject.model, subject.blocks, subject.cut_points, wanted)

    def _read_tokens(self, image: Tensor) -> Array:
        return read_pca_map(self._subject.network, self._subject.model, self._point, image)

    def look_ahead(self, images: Sequence[Tensor]) -> None:
        maps = np.stack([self._read_tokens(image) for image in images])
        self._components = Components.of(maps, self._settings)
        self._reach = component_range(self._components.split(maps)["components"])

    def see(self, image: Tensor) -> Seen:
        maps = self._read_tokens(image)[None]
        found = self._components.split(maps)
        colours = in_colours(found["components"][0], *self._reach)
        colours[found["outliers"][0]] = (OUTLIER, OUTLIER, OUTLIER, 1)
        return Seen(self._point.name, [colours.reshape(*maps.shape[2:], 4)])

    def scale(self, first: Seen) -> str:
        return "red, green, blue: components; grey: outliers"

    def draw(self, sheet: Sheet, shown: Image.Image, seen: Seen) -> list[Image.Image]:
        pixels = np.round(255 * seen.maps[0]).astype(np.uint8)
        tokens = Image.fromarray(pixels).resize(sheet.panel, Resampling.NEAREST)
        white = Image.new("RGBA", sheet.panel, BACKGROUND)
        alone = Image.alpha_composite(white, tokens).convert("RGB")
        there = tokens.getchannel("A").point([round(OVERLAY_ALPHA * value) for value in range(256)])
        return [alone, Image.composite(alone, shown, there)]


VIEWS: Mapping[str, Callable[[Subject, Mapping[str, Any], str], View]] = {
    "heads": HeadsView,
    "rollout": RolloutView,
    "components": ComponentsView,
}
