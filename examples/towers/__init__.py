"""Vision towers of language models, as classifiers of images of one size.

They take patches that were cut out before, in blocks of `merge` x `merge`, which the language model
later reads as one token each. The classes are those of a layer on the mean of what they return.

    from transformers import Siglip2VisionModel

    tower = Siglip2VisionModel.from_pretrained("google/siglip2-base-patch16-naflex")
    model = Cut(tower, nn.Linear(768, 10), patch=16)
    vitscope.look(model, images, labels).table("attention")
"""

import torch
from torch import Tensor, nn


def cut_out(images: Tensor, patch: int, merge: int) -> Tensor:
    """Return patches block by block: (images, patches, rows, columns, channels)."""
    rows, columns = (side // patch for side in images.shape[2:])
    x = images.unflatten(3, (columns // merge, merge, patch))
    x = x.unflatten(2, (rows // merge, merge, patch))
    # From image, channel, and block, place and pixel of rows and columns.
    return x.permute(0, 2, 5, 3, 6, 4, 7, 1).flatten(1, 4)


class Cut(nn.Module):
    """A tower that takes the patches of each image (SigLIP 2 NaFlex): (images, patches, values)."""

    def __init__(self, tower: nn.Module, head: nn.Module, patch: int, merge: int = 1) -> None:
        super().__init__()
        self.tower, self.head, self.patch, self.merge = tower, head, patch, merge

    def forward(self, images: Tensor) -> Tensor:
        patches = cut_out(images, self.patch, self.merge).flatten(2)
        side = [length // self.patch for length in images.shape[2:]]
        used = torch.ones(patches.shape[:2], dtype=torch.long)
        tokens = self.tower(patches, used, torch.tensor([side] * len(images))).last_hidden_state
        return self.head(tokens.mean(1))


class Packed(Cut):
    """A tower that takes the patches of all images as one sequence (Qwen2.5-VL)."""

    def __init__(
        self, tower: nn.Module, head: nn.Module, patch: int, merge: int = 2, frames: int = 2
    ) -> None:
        super().__init__(tower, head, patch, merge)
        self.frames = frames

    def forward(self, images: Tensor) -> Tensor:
        patches = cut_out(images, self.patch, self.merge).movedim(4, 2)
        # An image is a film of which each frame is the same.
        frames = patches[:, :, :, None].expand(-1, -1, -1, self.frames, -1, -1)
        side = [length // self.patch for length in images.shape[2:]]
        grid = torch.tensor([[1, *side]] * len(images))
        merged = self.tower(frames.reshape(len(images) * patches.shape[1], -1), grid).pooler_output
        return self.head(merged.unflatten(0, (len(images), -1)).mean(1))
