import pytest
import torch

from vitscope.errors import VitscopeError
from vitscope.networks.running.device import pick_device


def test_devices() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    if torch.cuda.is_available():
        assert pick_device("auto") == pick_device("cuda") == torch.device("cuda")
        return
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(VitscopeError) as caught:
        pick_device("cuda")
    assert str(caught.value) == (
        "device: the study asks for cuda and this machine has none; set device to auto or cpu."
    )
