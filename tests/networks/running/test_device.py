import torch

from tests.helpers.refusals import refusal
from vitscope.networks.running.device import pick_device


def test_devices() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    if torch.cuda.is_available():
        assert pick_device("auto") == pick_device("cuda") == torch.device("cuda")
        return
    assert pick_device("auto") == torch.device("cpu")
    assert refusal(pick_device, "cuda") == (
        "device: the study asks for cuda and this machine has none; set device to auto or cpu."
    )
