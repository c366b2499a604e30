"""Steps of training, also recorded and uphill; tests/gpu has the same with CUDA graphs."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from tests.helpers.recording import record_here
from tests.training.recipes import RECIPE
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.running.cuda_graphs import WARM_UP
from vitscope.training.steps import TrainingSteps, optimizer_for_steps, stepped_uphill, take_step

PLAIN = RECIPE | {"bfloat16": False}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3))


def batch(seed: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    return torch.randn(6, 3, 2, 2), torch.randn(6, 3).softmax(1)


def test_a_step_is_that_of_adamw_with_the_gradient_clipped() -> None:
    ours, theirs = network(), network()
    steps = TrainingSteps(ours, optimizer_for_steps(ours, PLAIN), PLAIN)
    decayed = [p for p in theirs.parameters() if p.ndim > 1]
    others = [p for p in theirs.parameters() if p.ndim == 1]
    groups = [{"params": others, "weight_decay": 0.0}, {"params": decayed, "weight_decay": 0.05}]
    optimizer = torch.optim.AdamW(groups)
    for number in range(1, 4):
        images, targets = batch(number)
        loss, hits = steps.take(images, targets, 0.01 * number)
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * number
        logits = theirs(images)
        expected = -(targets * logits.log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        expected.backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
        assert float(loss) == pytest.approx(float(expected.detach()), rel=1e-6)
        found = (logits.argmax(1) == targets.argmax(1)).float().mean()
        assert float(hits) == pytest.approx(float(found))
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-5, atol=1e-7)


def test_recorded_steps_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> tuple[list[float], nn.Module]:
        model, losses = network(), []
        steps = TrainingSteps(model, optimizer_for_steps(model, PLAIN), PLAIN)
        for number in range(WARM_UP + 3):
            losses.append(float(steps.take(*batch(number), 0.01)[0]))
        return losses, model

    expected, theirs = trained()
    replays = record_here(monkeypatch)
    losses, ours = trained()
    assert replays == [3]
    assert losses == expected
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, its)


def test_what_decays_is_what_timm_decays() -> None:
    grouped = import_timm("timm.optim").param_groups_weight_decay
    for name in ("test_vit", "test_convnext", "test_resnet"):
        model = import_timm().create_model(name)
        expected = grouped(model, 0.05)
        ours = optimizer_for_steps(model, RECIPE).param_groups
        assert [group["weight_decay"] for group in ours] == [0.0, 0.05]
        for mine, its in zip(ours, expected, strict=True):
            assert [*map(id, mine["params"])] == [*map(id, its["params"])]


RADIUS = 0.3
SAM = PLAIN | {"sam": RADIUS, "clip_gradient": 0.5}


def normalizing_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 2, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4, 3)
    ).train()


def test_a_bowl_is_climbed_along_its_gradient() -> None:
    """Of half the sum of a w^2 the gradient is a w, and uphill a w (1 + r a / |a w|)."""
    curvature = torch.tensor([1.0, 2.0, 5.0])
    model = nn.ParameterList([torch.tensor([3.0]), torch.tensor([-2.0, 0.5])])
    before = torch.cat([*model]).detach()

    def differentiate() -> Tensor:
        model.zero_grad()
        (curvature * torch.cat([*model]) ** 2 / 2).sum().backward()
        return torch.cat([each.grad for each in model])

    here = differentiate()
    with stepped_uphill(model, RADIUS):
        there = differentiate()
    length = (curvature * before).norm()
    torch.testing.assert_close(here, curvature * before, rtol=1e-6, atol=0)
    expected = here * (1 + RADIUS * curvature / length)
    torch.testing.assert_close(there, expected, rtol=1e-6, atol=0)
    assert torch.equal(torch.cat([*model]), before)


def differentiated(
    model: nn.Module, weights: dict[str, Tensor], images: Tensor, targets: Tensor
) -> tuple[float, dict[str, Tensor]]:
    at = {name: each.detach().requires_grad_() for name, each in weights.items()}
    loss = -(targets * functional_call(model, at, (images,)).log_softmax(1)).sum(1).mean()
    return loss.item(), dict(zip(at, torch.autograd.grad(loss, [*at.values()]), strict=True))


def test_a_step_is_that_of_a_second_implementation() -> None:
    ours, theirs = normalizing_network(), normalizing_network()
    steps = TrainingSteps(ours, optimizer_for_steps(ours, SAM), SAM)
    weights = {name: each.detach().clone() for name, each in theirs.named_parameters()}
    groups = [
        {"params": [each], "weight_decay": 0.05 if each.ndim > 1 else 0.0}
        for each in weights.values()
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    for number in range(3):
        images, targets = batch(number)
        taken, _ = steps.take(images, targets, 0.01)
        loss, first = differentiated(theirs, weights, images, targets)
        assert float(taken) == pytest.approx(loss, rel=1e-5)
        length = sum(each.square().sum() for each in first.values()).sqrt()
        climbed = {name: w + RADIUS * first[name] / length for name, w in weights.items()}
        _, second = differentiated(theirs, climbed, images, targets)
        clipped = min(1.0, 0.5 / float(sum(g.square().sum() for g in second.values()).sqrt()))
        for name, each in weights.items():
            each.grad = second[name] * clipped
        optimizer.step()
    for name, mine in ours.named_parameters():
        torch.testing.assert_close(mine, weights[name], rtol=1e-4, atol=1e-6)


def test_statistics_are_those_of_the_first_pass() -> None:
    model, (images, targets) = normalizing_network(), batch(0)
    maps = model[0](images).detach()
    take_step(model, optimizer_for_steps(model, SAM), images, targets, SAM)
    norm = model[1]
    assert norm.track_running_stats
    assert int(norm.num_batches_tracked) == 1
    mean, var = maps.mean((0, 2, 3)), maps.var((0, 2, 3))
    torch.testing.assert_close(norm.running_mean, 0.1 * mean, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(norm.running_var, 0.9 + 0.1 * var, rtol=1e-5, atol=1e-7)


def test_in_half_precision_weights_are_moved_in_full() -> None:
    """A radius below the spacing of bfloat16 still turns the gradient."""
    images, targets = batch(0)
    found = []
    for radius in (None, 1e-4):
        model = normalizing_network()
        recipe = SAM | {"bfloat16": True, "sam": radius}
        take_step(model, optimizer_for_steps(model, recipe), images, targets, recipe)
        found.append(torch.cat([each.grad.flatten() for each in model.parameters()]))
        assert found[-1].dtype == torch.float32
    with stepped_uphill(model, 1e-4):
        moved = torch.cat([each.detach().flatten() for each in model.parameters()])
    kept = torch.cat([each.detach().flatten() for each in model.parameters()])
    assert float((moved - kept).norm()) == pytest.approx(1e-4, rel=1e-2)
