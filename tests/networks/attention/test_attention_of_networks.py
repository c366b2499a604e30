"""Attention times values is what networks make of them: of timm, and torch's own module."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.attending import found_in, sharpened, weights_of
from tests.helpers.networks import MINI, described, mini
from tests.helpers.tiers import some_of
from vitscope.networks.attention import reading
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.attention.reading import differences_of_read_attention
from vitscope.networks.building.timm_import import import_timm

# Of the largest output.
TOLERANCE = 1e-5
CHANNELS_ATTEND = "channels attend to channels there, and not positions to positions"


@dataclass(frozen=True)
class Net:
    """A network of timm, and how much of its attention is read, mixed, or refused for a reason."""

    found: int
    size: int = 224
    mixed: int = 0
    refused: int = 0
    given: dict[str, Any] = field(default_factory=dict)


NETWORKS = {
    # One token for the class; four registers behind it; and another one for a teacher.
    "vit_tiny_patch16_224": Net(12, 64, given={"img_size": 64}),
    "vit_small_patch14_reg4_dinov2": Net(12, 70, given={"img_size": 70}),
    "deit_tiny_distilled_patch16_224": Net(12),
    # Relative and rotary positions.
    "beit_base_patch16_224": Net(4, given={"depth": 4}),
    "eva02_tiny_patch14_224": Net(12),
    "levit_128s": Net(11),
    # Windows: rolled, padded, on a grid; with tokens that stand for a window.
    "swin_tiny_patch4_window7_224": Net(4, given={"depths": (2, 2)}),
    "swinv2_tiny_window8_256": Net(12, 256),
    "samvit_base_patch16": Net(4, given={"img_size": 224, "depth": 4, "global_attn_indexes": (3,)}),
    "maxvit_tiny_rw_224": Net(22),
    "nest_tiny": Net(12),
    "gcvit_xxtiny": Net(12),
    "hiera_tiny_224": Net(12),
    "halonet26t": Net(3, 256),
    "mobilevit_xxs": Net(9, 256),
    # Pooled keys or queries.
    "pvt_v2_b0": Net(8),
    "twins_svt_small": Net(18),
    "mvitv2_tiny": Net(10),
    # Maps that shrink, convolutions between.
    "pit_ti_224": Net(12),
    "coatnet_0_rw_224": Net(9),
    "resnet50_clip.openai": Net(1),
    # Attention of the class alone behind that of tokens, whose heads are mixed.
    "cait_xxs24_224": Net(6, mixed=4, given={"depth": 4}),
    "volo_d1_224": Net(16),
    "crossvit_tiny_240": Net(21, 240),
    "convit_tiny": Net(12, mixed=10),
    "efficientformerv2_s0": Net(5, mixed=4),
    # Attention on the right of the product with values.
    "shvit_s1": Net(9),
    # Channels attend, too.
    "davit_tiny": Net(6, refused=6),
    "xcit_nano_12_p16_224": Net(2, refused=4, given={"depth": 4}),
    "edgenext_xx_small": Net(0, 256, refused=3),
}
OFTEN = ("vit_tiny_patch16_224", "swin_tiny_patch4_window7_224")
OFTEN += ("cait_xxs24_224", "xcit_nano_12_p16_224")


@pytest.mark.parametrize("name", some_of(NETWORKS, *OFTEN))
def test_networks_of_timm(name: str) -> None:
    expected = NETWORKS[name]
    model = sharpened(import_timm().create_model(name, **expected.given))
    found = found_in(model, expected.size)
    assert {*found.refused.values()} == ({CHANNELS_ATTEND} if expected.refused else set())
    images = torch.randn(2, 3, expected.size, expected.size)
    compared = differences_of_read_attention(model, found.attentions, images)
    counts = replace(
        expected,
        found=len(found.attentions),
        mixed=sum(each.mixed for each in found.attentions),
        refused=len(found.refused),
    )
    assert counts == expected
    assert len(compared) == expected.found - expected.mixed
    assert all(difference <= TOLERANCE for difference in compared.values()), compared
    check_rows(model, found.attentions[:: max(1, len(found.attentions) // 3)], images[:1])


def check_rows(model: nn.Module, attentions: Any, images: Tensor) -> None:
    """Rows sum to one, but those whose keys are all masked, and most are far from even."""
    even = []
    for attention in attentions:
        # In a pass that reads but one of them: the others are passed by.
        (read,) = weights_of(model, [attention], images)
        sums = read.sum(-1)
        torch.testing.assert_close(sums, (sums > 0.5).to(sums), rtol=0, atol=1e-5)
        keys = read.shape[-1]
        even.append(bool((read.amax(-1) < 2 / keys).double().mean() > 0.5))
    assert not even or sum(even) < len(even)


@pytest.mark.nightly
def test_at_least_twenty_kinds_are_read_whole() -> None:
    whole = [name for name, net in NETWORKS.items() if net.found and not net.refused]
    assert len(whole) >= 20


def test_a_wrong_reading_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = sharpened(import_timm().create_model("vit_tiny_patch16_224", depth=2, img_size=32))
    attentions, images = found_in(model, 32).attentions, torch.randn(2, 3, 32, 32)
    assert max(differences_of_read_attention(model, attentions, images).values()) <= TOLERANCE
    right = reading._FusedAttention.weights_at
    monkeypatch.setattr(
        reading._FusedAttention, "weights_at", lambda *given: right(*given).roll(1, -1)
    )
    wrong = differences_of_read_attention(model, attentions, images)
    assert len(wrong) == 2
    assert min(wrong.values()) > 0.01


@pytest.mark.parametrize("name", some_of(MINI, "pit", "swin", "resnet"))
def test_every_msa_of_the_bundled_networks_is_found_behind_its_cut_point(name: str) -> None:
    model, points = mini(name)
    found = find_attention(model, described(), points)
    msas = [index for index, point in enumerate(points) if point.kind == "msa"]
    # A class token of PiT and ViT attends with all others; an MSA has one attention.
    assert [each.index for each in found.attentions] == msas
    assert not found.refused
    compared = differences_of_read_attention(
        sharpened(model), found.attentions, torch.randn(2, 3, 32, 32)
    )
    assert len(compared) == len(msas)
    assert all(difference <= TOLERANCE for difference in compared.values())
    # What the build-up of AlterNet begins with has none yet.
    attends = MINI[name]["family"] in ("vit", "pit", "swin", "alternet") and name != "cnn"
    assert bool(msas) == attends


def test_attention_behind_the_last_cut_point() -> None:
    model, points = mini("vit")
    found = find_attention(model, described(), points[:3])
    assert [each.index for each in found.attentions] == [1] + [3] * 11


LENGTH, HEADS, WIDTH = 16, 2, 8


class Multihead(nn.Module):
    """Torch's own attention over 4 x 4 patches of 16 x 16 pixels; keeps the weights it returns."""

    def __init__(self, given: dict[str, Any], **made: Any) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 4, 4)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, **made)
        self.given = given
        self.returned: Tensor | None = None

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.stem(images).flatten(2).mT
        if not self.attention.batch_first:
            tokens = tokens.transpose(0, 1)
        images_of = {3: HEADS * len(images), 2: LENGTH}
        given = dict(self.given)
        # As much of a mask as there are images.
        if "attn_mask" in given:
            mask = given["attn_mask"]
            given["attn_mask"] = mask[: images_of[mask.ndim]].to(images.device)
        if "key_padding_mask" in given:
            given["key_padding_mask"] = given["key_padding_mask"][: len(images)].to(images.device)
        result, self.returned = self.attention(tokens, tokens, tokens, **given)
        return result.flatten(1) if self.attention.batch_first else result[0]


GENERATOR = torch.Generator().manual_seed(0)
UPPER = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
OF_HEADS = torch.randn(3 * HEADS, LENGTH, LENGTH, generator=GENERATOR)
PADDED = torch.arange(LENGTH).expand(3, -1) >= torch.tensor([[9], [16], [12]])
GIVEN: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a mask of bool": {"attn_mask": UPPER.flip(0, 1)},
    "a mask of numbers": {"attn_mask": OF_HEADS[0]},
    "a mask of each head": {"attn_mask": OF_HEADS},
    "a causal mask": {"attn_mask": UPPER, "is_causal": True},
    "keys that only pad": {"key_padding_mask": PADDED},
}
MADE: dict[str, dict[str, Any]] = {
    "": {},
    "a key for all": {"add_bias_kv": True},
    "a key of zeros": {"add_zero_attn": True},
}
# Where torch adds keys and takes no weights, it masks the added ones if a mask is causal.
KINDS = [("", given) for given in GIVEN] + [
    (made, given) for made in MADE if made for given in ("nothing", "keys that only pad")
]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(("made", "given"), KINDS)
def test_multihead_attention(made: str, given: str, batch_first: bool, need_weights: bool) -> None:
    torch.manual_seed(0)
    asked = {"need_weights": need_weights, "average_attn_weights": False}
    model = Multihead(GIVEN[given] | asked, batch_first=batch_first, **MADE[made])
    sharpened(model)
    (attention,) = found_in(model, 16).attentions
    assert attention.name == "attention"
    assert (attention.heads, attention.queries.shape[1]) == (HEADS, LENGTH)
    # What is added to the keys has no place.
    added = attention.keys.shape[1] - LENGTH
    assert added == bool(made)
    assert torch.from_numpy(attention.keys[0]).isnan().any(1).sum() == added
    images = torch.randn(3, 3, 16, 16)
    (read,) = weights_of(model, [attention], images)
    (difference,) = differences_of_read_attention(model, [attention], images).values()
    assert difference <= TOLERANCE
    model.given["need_weights"] = True
    with torch.no_grad():
        model(images)
    torch.testing.assert_close(read[:, 0], model.returned.double(), rtol=1e-5, atol=1e-6)
