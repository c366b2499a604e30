"""Steps of training, also recorded; tests/gpu has the same with CUDA graphs."""

import pytest
import torch
from torch import nn

from tests.helpers.recording import record_here
from tests.training.recipes import RECIPE
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.running.device import WARM_UP
from vitscope.training.steps import Steps, optimizer_of

PLAIN = RECIPE | {"bfloat16": False}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3))


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(6, 3, 2, 2), torch.randn(6, 3).softmax(1)) for _ in range(count)]


def test_a_step_is_that_of_adamw_with_the_gradient_clipped() -> None:
    ours, theirs = network(), network()
    steps = Steps(ours, optimizer_of(ours, PLAIN), PLAIN)
    decayed = [p for p in theirs.parameters() if p.ndim > 1]
    others = [p for p in theirs.parameters() if p.ndim == 1]
    groups = [{"params": others, "weight_decay": 0.0}, {"params": decayed, "weight_decay": 0.05}]
    optimizer = torch.optim.AdamW(groups)
    for number, (images, targets) in enumerate(batches(3), start=1):
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
        steps = Steps(model, optimizer_of(model, PLAIN), PLAIN)
        for batch in batches(WARM_UP + 3):
            losses.append(float(steps.take(*batch, 0.01)[0]))
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
        ours = optimizer_of(model, RECIPE).param_groups
        assert [group["weight_decay"] for group in ours] == [0.0, 0.05]
        for mine, its in zip(ours, expected, strict=True):
            assert [*map(id, mine["params"])] == [*map(id, its["params"])]
