import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.helpers.networks import KINDS, mini
from tests.helpers.refusals import refusal
from tests.helpers.tiers import some_of
from vitscope.errors import VitscopeError
from vitscope.networks.building.timm_import import import_timm

IMAGES = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def run(blocks: list[vitscope.Block], x: Tensor) -> Tensor:
    for block in blocks:
        x = block(x)
    return x


@pytest.mark.parametrize("name", KINDS.values())
def test_blocks_are_the_network(name: str) -> None:
    network, _ = mini(name)
    blocks = vitscope.blocks(network, IMAGES)
    assert {block.name: block.why_not for block in blocks if block.why_not} == {}
    with torch.no_grad():
        # Of another number of images, too.
        for images in (IMAGES, torch.cat([IMAGES, -IMAGES])):
            assert torch.equal(run(blocks, images), network(images))


def test_images_may_be_an_array_and_no_pixels() -> None:
    network, _ = mini("vit")
    blocks = vitscope.blocks(network, IMAGES.numpy())
    with torch.no_grad():
        assert torch.equal(run(blocks, IMAGES), network(IMAGES))
    for wrong in ((255 * IMAGES).byte(), IMAGES[0], IMAGES[:1]):
        with pytest.raises(VitscopeError, match=r"allowed: two images or more, \(N, C, H, W\)"):
            vitscope.blocks(network, wrong)


# Networks of timm, and the side of their images.
OTHERS = dict.fromkeys(("efficientnet_b0", "pvt_v2_b0", "resnet26t", "vgg11"), 64)
OTHERS |= dict.fromkeys(("swin_s3_tiny_224", "mixer_s32_224", "coat_lite_tiny"), 224)
OTHERS |= {"maxvit_rmlp_pico_rw_256": 256}


@pytest.mark.parametrize("name", some_of(OTHERS, "efficientnet_b0", "pvt_v2_b0"))
def test_blocks_are_networks_of_others(name: str) -> None:
    torch.manual_seed(0)
    size = OTHERS[name]
    network = import_timm().create_model(name, num_classes=5).eval()
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    blocks = vitscope.blocks(network, images)
    assert [block.why_not for block in blocks] == [None] * len(blocks)
    with torch.no_grad():
        assert torch.equal(run(blocks, images), network(images))


def test_maps_and_names_are_those_of_the_tables() -> None:
    network, _ = mini("vit")
    blocks = vitscope.blocks(network, IMAGES)
    scope = vitscope.look(network, IMAGES)
    table = scope.table("blocks")
    assert [block.name for block in blocks] == [*table["name"], "head"]
    assert [block.kind for block in blocks] == [*table["kind"], "head"]
    x = IMAGES
    for block, (name, maps) in zip(blocks, scope.maps(), strict=False):
        x = block(x)
        assert block.name == name
        torch.testing.assert_close(block.maps(x).detach().numpy(), maps, rtol=1e-6, atol=1e-6)


def test_gradients_pass_through_blocks() -> None:
    network, _ = mini("resnet")
    blocks = vitscope.blocks(network, IMAGES)
    one, other = (IMAGES.clone().requires_grad_() for _ in range(2))
    run(blocks, one).square().sum().backward()
    weight = next(network.parameters())
    found, weight.grad = weight.grad, None
    network(other).square().sum().backward()
    torch.testing.assert_close(one.grad, other.grad)
    torch.testing.assert_close(found, weight.grad)


def test_the_network_is_given_back_as_it_was() -> None:
    network = mini("resnet")[0].train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    vitscope.blocks(network, IMAGES)
    assert network.training
    assert all(torch.equal(before[name], it) for name, it in network.state_dict().items())
    network.eval()


class InPlace(nn.Module):
    """Changes the stream in place, a view of it besides."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for conv in self.convs:
            x += conv(x)
            x[:, :4].relu_()
        return self.head(x.mean((2, 3)))


def test_what_is_changed_in_place_stays_in_its_block() -> None:
    network = InPlace().eval()
    blocks = vitscope.blocks(network, IMAGES)
    assert len(blocks) > 3
    assert [block.why_not for block in blocks] == [None] * len(blocks)
    with torch.no_grad():
        stream = blocks[0](IMAGES)
        before = stream.clone()
        blocks[1](stream)
        assert torch.equal(stream, before)
        assert torch.equal(run(blocks, IMAGES), network(IMAGES))


class TwoStreams(nn.Module):
    """Its second part takes what was computed before the first."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.one, self.two = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        stem = self.stem(x)
        one = self.one(stem)
        return self.head((self.two(one) + stem).mean((2, 3)))


def test_a_block_that_takes_more_than_the_stream_says_so() -> None:
    points = [{"module": each, "kind": "conv", "inside": True} for each in ("stem", "one", "two")]
    blocks = vitscope.blocks(TwoStreams().eval(), IMAGES, points)
    *others, head = blocks
    assert [block.why_not for block in others] == [None] * 3
    assert "head: It takes more of what was computed before" in refusal(head, IMAGES)


def test_a_tensor_of_another_shape_is_refused() -> None:
    blocks = vitscope.blocks(mini("resnet")[0], IMAGES)
    sentence = refusal(blocks[0], torch.zeros(3, 3, 16, 16))
    assert "stem: found a tensor of the shape 3x3x16x16, allowed: 3x3x32x32" in sentence
