from typing import Any

import torch

from tests.helpers.attending import found_in, sharpened
from vitscope.networks.attention.reading import differences
from vitscope.networks.building.family import find_family
from vitscope.networks.finding.search import find_cut_points

# Images of 20 x 20 pixels are 5 x 5 tokens.
SIZE, TOKENS = 20, 25
ARCH = {"patch_size": 4, "embed_dim": 8, "depth": 2, "num_heads": 2}
IMAGES = torch.randn(3, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))


def vit(**arch: Any) -> Any:
    torch.manual_seed(0)
    return sharpened(find_family("vit").build({**ARCH, **arch}, 10, SIZE)).double()


def test_the_mean_of_all_tokens_is_classified() -> None:
    model, images = vit(class_token=False), IMAGES.double()
    with torch.no_grad():
        tokens = model.patch_embed(images) + model.pos_embed
        assert tokens.shape == (3, TOKENS, 8)
        for block in model.blocks:
            tokens = block(tokens)
        mean = tokens.mean(dim=1)
        centered = mean - mean.mean(dim=1, keepdim=True)
        normed = centered / (centered.square().mean(dim=1, keepdim=True) + 1e-6).sqrt()
        normed = normed * model.fc_norm.weight + model.fc_norm.bias
        expected = normed @ model.head.weight.T + model.head.bias
        torch.testing.assert_close(model(images), expected, rtol=1e-12, atol=1e-12)


def test_cut_points_are_those_of_a_vit_with_a_token_and_attention_is_proven() -> None:
    model = vit(class_token=False).float()
    points, theirs = (find_cut_points(each, IMAGES).points for each in (model, vit().float()))
    assert [(point.name, point.kind) for point in points] == [
        (point.name, point.kind) for point in theirs
    ]
    attentions = found_in(model, SIZE).attentions
    assert max(differences(model, attentions, IMAGES).values()) < 1e-5


def test_the_setting_that_is_left_out_is_a_token() -> None:
    left_out, said = vit().state_dict(), vit(class_token=True).state_dict()
    assert all(torch.equal(left_out[name], said[name]) for name in left_out)
    assert [*left_out] == [*said]
    assert "cls_token" in left_out
    assert "cls_token" not in vit(class_token=False).state_dict()


def test_windows_have_no_token_that_sees_all() -> None:
    mask = vit(class_token=False, attention_window=3).blocks[0].attn.mask
    assert mask.shape == (TOKENS, TOKENS)
    # The corner sees the four of its window.
    assert mask[0].isfinite().nonzero().flatten().tolist() == [0, 1, 5, 6]
