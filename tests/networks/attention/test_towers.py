"""Vision towers of language models: rotary positions, patches in blocks of 2 x 2."""

import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vitscope
from examples.towers import Cut, Packed
from tests.helpers.attending import found_in, sharpened, weights_of
from tests.helpers.networks import described
from vitscope.errors import VitscopeError
from vitscope.networks.attention.reading import differences_of_read_attention
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import list_blocks

transformers = pytest.importorskip("transformers")
SIZE, PATCH, CLASSES = 64, 8, 5
SIDE = SIZE // PATCH
TWO_BLOCKS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
TWO_BLOCKS |= {"num_attention_heads": 2, "patch_size": PATCH}
SMALL = {"img_size": SIZE, "patch_size": PATCH, "embed_dim": 32, "depth": 2, "num_heads": 2}


def of_timm(name: str, kind: str, **settings: Any) -> nn.Module:
    module = import_timm(f"timm.models.{name}")
    network: nn.Module = getattr(module, kind)(**SMALL, **settings, num_classes=CLASSES)
    return network


def siglip2() -> nn.Module:
    import_timm()
    config = transformers.Siglip2VisionConfig(**TWO_BLOCKS, num_patches=SIDE * SIDE)
    tower = transformers.Siglip2VisionModel(config)
    return Cut(tower, nn.Linear(32, CLASSES), PATCH, merge=2)


def qwen() -> nn.Module:
    import_timm()
    from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as modeling

    config = modeling.Qwen2_5_VLVisionConfig(
        depth=3,
        hidden_size=32,
        intermediate_size=48,
        num_heads=2,
        out_hidden_size=24,
        patch_size=PATCH,
        window_size=4 * PATCH,
        fullatt_block_indexes=[1],
    )
    tower = modeling.Qwen2_5_VisionTransformerPretrainedModel(config)
    return Packed(tower, nn.Linear(24, CLASSES), PATCH, merge=2, frames=2)


class InOneSequence(nn.Module):
    """Pixtral: all images are one sequence, in which a mask lets each attend to itself alone."""

    def __init__(self, how: str, masked: bool = True) -> None:
        super().__init__()
        import_timm()
        config = transformers.PixtralVisionConfig(
            **TWO_BLOCKS, image_size=SIZE, attn_implementation=how
        )
        self.tower, self.head = transformers.PixtralVisionModel(config), nn.Linear(32, CLASSES)
        self.masked = masked

    def forward(self, images: Tensor) -> Tensor:
        with pytest.MonkeyPatch.context() as patched:
            if not self.masked:
                module = sys.modules[type(self.tower).__module__]
                patched.setattr(module, "generate_block_attention_mask", lambda *_: None)
            tokens = self.tower(images).last_hidden_state
        return self.head(tokens.unflatten(1, (len(images), -1)).mean(2)[0])


def in_rows() -> Tensor:
    """Return the centre of each patch, in pixels, row by row: (patches, 2)."""
    centres = (torch.arange(SIDE, dtype=torch.float64) + 0.5) * PATCH
    return torch.cartesian_prod(centres, centres)


def in_blocks() -> Tensor:
    """Return the centres in blocks of 2 x 2: all four of a block follow one another."""
    half = range(SIDE // 2)
    places = [
        (2 * row + below, 2 * column + beside)
        for row in half
        for column in half
        for below in (0, 1)
        for beside in (0, 1)
    ]
    return (torch.tensor(places, dtype=torch.float64) + 0.5) * PATCH


TOWERS = {
    "qwen3_vit": (
        lambda: of_timm("qwen3_vit", "Qwen3VitClassifier", pos_embed_grid_size=SIDE),
        in_rows,
    ),
    "deepseek_vit": (lambda: of_timm("deepseek_vit", "DeepseekVitClassifier"), in_rows),
    "siglip2": (siglip2, in_blocks),
}


def hiding(mask: Tensor) -> Tensor:
    """Return what a mask adds to scores."""
    hidden = torch.zeros(mask.shape, dtype=torch.float64)
    return hidden.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else mask.double()


def softmaxes(model: nn.Module, images: Tensor, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Return the softmax of each attention in double precision, of what the network hands over."""
    taken: list[Tensor] = []
    attend = nn.functional.scaled_dot_product_attention

    def note(query: Tensor, key: Tensor, *others: Any, **named: Any) -> Tensor:
        scale = named.get("scale") or query.shape[-1] ** -0.5
        scores = query.double() @ key.double().transpose(-2, -1) * scale
        mask = named.get("attn_mask")
        taken.append((scores if mask is None else scores + hiding(mask)).softmax(-1))
        return attend(query, key, *others, **named)

    with monkeypatch.context() as patched, torch.no_grad():
        patched.setattr(nn.functional, "scaled_dot_product_attention", note)
        # timm computes attention by hand where it may not use this operation.
        for module in model.modules():
            if hasattr(module, "fused_attn"):
                patched.setattr(module, "fused_attn", True)
        model(images)
    return taken


@pytest.mark.parametrize("name", TOWERS)
def test_attention_of_towers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, order = TOWERS[name]
    torch.manual_seed(0)
    model, centres = sharpened(build()), order()
    images = torch.rand(2, 3, SIZE, SIZE)
    true = softmaxes(model, images, monkeypatch)
    found = found_in(model, SIZE)
    assert not found.refused
    assert len(found.attentions) == len(true) == 2
    for attention in found.attentions:
        for places in (attention.queries, attention.keys):
            np.testing.assert_allclose(places[0] * SIZE, centres, atol=1e-4)
    for read, weights in zip(weights_of(model, found.attentions, images), true, strict=True):
        # In float32 the scores, up to some tens, are exact to 1e-6 of these.
        torch.testing.assert_close(read[:, 0], weights, rtol=0, atol=1e-4)
    table = vitscope.look(model, images, torch.arange(2)).table("attention")
    apart = (centres[:, None] - centres[None]).norm(dim=-1)
    far = [float((weights * apart).sum(-1).mean()) for weights in true]
    np.testing.assert_allclose(table[table["head"].isna()]["distance"], far, rtol=1e-4)


def test_a_packed_tower_is_read_but_for_its_attention() -> None:
    """Qwen2.5-VL: all images are one sequence, window by window, and each window attends alone."""
    torch.manual_seed(0)
    model = sharpened(qwen())
    blocks = list_blocks("qwen", model, described(SIZE) | {"classes": CLASSES})
    assert blocks.table["kind"].tolist() == ["stem", *["msa", "mlp"] * 3]
    # Its windows have 2 x 2 blocks of 2 x 2 patches.
    windows = in_blocks().reshape(2, 2, 2, 2, 4, 2).permute(0, 2, 1, 3, 4, 5).reshape(-1, 2)
    rows, columns = ((windows - PATCH / 2) / PATCH).long().T
    tokens = torch.argsort(rows * SIDE + columns)
    assert [point.layout.tokens for point in blocks.points[1:]] == [tuple(tokens.tolist())] * 6
    found = found_in(model, SIZE)
    assert not found.attentions
    assert {*found.refused.values()} == {
        "images are packed into one sequence there, and each attends in an operation of its own"
    }
    scope = vitscope.look(model, torch.rand(4, 3, SIZE, SIZE), torch.arange(4))
    assert len(scope.table("lesion")) == 6
    with pytest.raises(VitscopeError, match="an operation of its own"):
        scope.table("attention")


@pytest.mark.parametrize("how", ["sdpa", "eager"])
def test_images_that_a_mask_separates_in_one_sequence(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model, centres = sharpened(InOneSequence(how)), in_rows()
    images = torch.rand(2, 3, SIZE, SIZE)
    # What each image attends to by itself; its sequence is then that of one image.
    alone = [softmaxes(sharpened_as(model), each[None], monkeypatch) for each in images]
    true = [torch.cat(layer) for layer in zip(*alone, strict=True)]
    found = found_in(model, SIZE)
    assert not found.refused
    assert [attention.packed for attention in found.attentions] == [True, True]
    for attention in found.attentions:
        np.testing.assert_allclose(attention.queries[0] * SIZE, centres, atol=1e-4)
    for read, weights in zip(weights_of(model, found.attentions, images), true, strict=True):
        torch.testing.assert_close(read[:, 0].double(), weights, rtol=0, atol=1e-4)
    assert max(differences_of_read_attention(model, found.attentions, images).values()) < 1e-5
    scope = vitscope.look(model, images, torch.arange(2))
    assert scope.read == "4 of 4 sums, 2 of 2 attentions, 100% of the operations"
    table = scope.table("attention")
    apart = (centres[:, None] - centres[None]).norm(dim=-1)
    far = [float((weights * apart).sum(-1).mean()) for weights in true]
    np.testing.assert_allclose(table[table["head"].isna()]["distance"], far, rtol=1e-4)


def sharpened_as(model: InOneSequence) -> InOneSequence:
    """Return the same network, which hands over its queries and keys."""
    same = InOneSequence("sdpa").eval()
    same.load_state_dict(model.state_dict())
    return same


def test_images_that_attend_to_each_other_in_one_sequence_are_refused() -> None:
    torch.manual_seed(0)
    found = found_in(InOneSequence("sdpa", masked=False).eval(), SIZE)
    assert not found.attentions
    assert {*found.refused.values()} == {"images attend to each other"}
