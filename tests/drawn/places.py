from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True)
class Place:
    """The layout of a stream (tokens, nchw, nhwc), its map, and its tokens that are no positions.

    `front` and `back` say how many of these stand before and behind the positions; `pixel` is how
    many pixels of the image lie between two positions; `columns` that tokens stand column by
    column.
    """

    stream: str
    height: int
    width: int
    channels: int
    front: int
    back: int
    pixel: int
    columns: bool = False

    @property
    def positions(self) -> int:
        return self.height * self.width

    @property
    def tokens(self) -> int:
        return self.front + self.positions + self.back

    def to_tokens(self, x: Tensor) -> Tensor:
        if self.stream == "nchw":
            return x.flatten(2).transpose(1, 2)
        return x.flatten(1, 2) if self.stream == "nhwc" else x

    def from_tokens(self, tokens: Tensor) -> Tensor:
        """Return what is (images, tokens, channels) as the stream is laid out."""
        if self.stream == "nchw":
            return tokens.transpose(1, 2).unflatten(2, (self.height, self.width))
        if self.stream == "nhwc":
            return tokens.unflatten(1, (self.height, self.width))
        return tokens

    def split(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the tokens in front, the positions and the tokens behind them."""
        end = self.front + self.positions
        return tokens[:, : self.front], tokens[:, self.front : end], tokens[:, end:]

    def to_map(self, positions: Tensor) -> Tensor:
        """Return positions (images, positions, channels) as (images, channels, height, width)."""
        channels = positions.transpose(1, 2)
        if self.columns:
            return channels.unflatten(2, (self.width, self.height)).transpose(2, 3)
        return channels.reshape(len(positions), -1, self.height, self.width)

    def from_map(self, x: Tensor) -> Tensor:
        return (x.transpose(2, 3) if self.columns else x).flatten(2).transpose(1, 2)

    def around(self, tokens: Tensor, positions: Tensor) -> Tensor:
        if not self.front and not self.back:
            return positions
        front, _, back = self.split(tokens)
        kept = [each for each in (front, positions, back) if each.shape[1]]
        return torch.cat(kept, 1)

    def pixels(self) -> npt.NDArray[np.float64]:
        """Return the place of each position in pixels: (positions, 2)."""
        rows, columns = np.mgrid[: self.height, : self.width]
        if self.columns:
            rows, columns = rows.T, columns.T
        return (np.stack([rows.ravel(), columns.ravel()], 1) + 0.5) * self.pixel

    def pixels_of_tokens(self) -> npt.NDArray[np.float64]:
        """Return the place of each token; NaN for those that are no positions."""
        none = [np.full((count, 2), np.nan) for count in (self.front, self.back)]
        return np.concatenate([none[0], self.pixels(), none[1]])
