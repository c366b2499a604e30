"""What of the attention is shown in a frame: every head of a block, or the rollout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from vitscope.image_size import height_and_width
from vitscope.measures.attending import attention_in
from vitscope.measures.attention.maps import Maps, Rollout, attention_named, maps_of
from vitscope.networks.attention.reading import Attention
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.video.drawing import Map, Scale


@dataclass(frozen=True)
class Subject:
    """The network that looks, and how it takes images.

    `settings` of the network include the mean and the deviation of its pixels; `taking` says how
    pictures are brought to its size, as a data set brings its own.
    """

    model: str
    label: str
    network: nn.Module
    cut_points: Sequence[CutPoint]
    settings: Mapping[str, Any]
    taking: Mapping[str, Any]
    device: torch.device

    def attention(self) -> tuple[list[Attention], list[str]]:
        """Return the attention of the network, and what cannot be read of it."""
        where = f"models.{self.model}"
        return attention_in(self.network, self.settings, self.cut_points, where)


class Seen(NamedTuple):
    """What is seen in a frame: whose attention it is, and the maps.

    `query` is where the query is, as shares of the image's height and width, if it is one.
    """

    of: str
    maps: list[Map]
    query: tuple[float, float] | None = None


class HeadsView:
    """A map of every head of one attention, or of some; the first frame says how bright."""

    lies_over = False

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        attentions, self.warnings = subject.attention()
        attention = attentions[attention_named(attentions, settings["block"], subject.model, where)]
        self._network, size = subject.network, subject.settings["image_size"]
        self._size = height_and_width(size)
        self._heads = settings["heads"] or [*range(attention.heads)]
        self._brightest = settings["brightest"]
        self._maps = Maps(subject.model, size, attention, where)
        self._maps.show_heads(settings["query"], self._heads)
        self.title = attention.name
        self.panels = [f"head {head}" for head in self._heads]

    def see(self, image: Tensor) -> Seen:
        """Look at a frame, as the network takes it."""
        maps, _ = maps_of(self._network, self._maps, image)
        found = {each["head"]: each for each in maps}
        shown = [found[head] for head in self._heads]
        grids = [np.reshape(each["weights"], (each["height"], each["width"])) for each in shown]
        row, column = shown[0]["query_row"], shown[0]["query_column"]
        query = None if row is None else (row / self._size[0], column / self._size[1])
        return Seen(shown[0]["of"], grids, query)

    def scale(self, first: Seen) -> tuple[Scale, float]:
        """Return the scale of all frames, and the value of its brightest colour."""
        brightest = self._brightest or 100 * max(float(each.max()) for each in first.maps) or 100.0
        return Scale("0", f"{brightest:.3g} or more", "attention (%)"), brightest / 100


class RolloutView:
    """The rollout of all attention over its largest value, alone and over the picture."""

    panels = ("rollout", "over the video")
    lies_over = True

    def __init__(self, subject: Subject, settings: Mapping[str, Any], where: str) -> None:
        attentions, self.warnings = subject.attention()
        self._rollout = Rollout(attentions)
        self._network, self._fusion = subject.network, settings["fusion"]
        self.title = f"rollout, {self._fusion} of heads"

    def see(self, image: Tensor) -> Seen:
        """Look at a frame, as the network takes it."""
        self._rollout.run(self._network, image, self._fusion)
        of, values = self._rollout.result()
        return Seen(of, [values.double().reshape(self._rollout.grid).numpy()])

    def scale(self, first: Seen) -> tuple[Scale, float]:
        """Return the scale of all frames, and the value of its brightest colour."""
        return Scale("0", "1", "rollout over its largest"), 1.0


def view_of(subject: Subject, settings: Mapping[str, Any], where: str) -> HeadsView | RolloutView:
    """Return what a video shows; `where` is the section of settings that says it."""
    kind = HeadsView if settings["shows"] == "heads" else RolloutView
    return kind(subject, settings, where)
