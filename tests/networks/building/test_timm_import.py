"""Importing torchvision beside a torch that its compiled operators do not fit."""

import subprocess
import sys

import pytest


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter: what was declared or imported cannot be taken back."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def fits() -> bool:
    """Tell whether torchvision can be imported here without help."""
    return run("import torchvision").returncode == 0


@pytest.mark.nightly
def test_torchvision_and_timm_can_be_imported() -> None:
    done = run(
        "from vitscope.networks.building.timm_import import declare, import_timm\n"
        "declare()\n"
        "import torchvision.transforms.v2\n"
        "assert import_timm('timm.data').Mixup\n"
        "declare()\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_operators_are_declared_only_where_they_are_missing(fits: bool) -> None:
    done = run(
        "from vitscope.networks.building import timm_import as ops\n"
        "ops.declare()\n"
        "ops.declare()\n"
        "print(len(ops._LIBRARIES))\n"
    )
    assert done.stdout.strip() == ("0" if fits else "1"), done.stderr


@pytest.mark.nightly
def test_what_is_declared_already_stays() -> None:
    done = run(
        "import torch\n"
        "library = torch.library.Library('torchvision', 'FRAGMENT')\n"
        "library.define('nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')\n"
        "from vitscope.networks.building.timm_import import declare\n"
        "declare()\n"
        "print(hasattr(torch.ops.torchvision, 'qnms'))\n"
        "import torchvision\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"


@pytest.mark.nightly
def test_the_help_is_needed_where_we_say_so(fits: bool) -> None:
    if fits:
        pytest.skip("torchvision fits the torch of this environment")
    assert "torchvision::nms" in run("import torchvision").stderr
