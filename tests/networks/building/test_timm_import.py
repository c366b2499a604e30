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


WITHOUT_COMPILER = (
    "import sys\n"
    "from vitscope.networks.building.timm_import import import_timm\n"
    "import_timm()\n"
    "print([name for name in sys.modules if name.startswith('torch._dynamo')])\n"
    "import torch\n"
    "from vitscope.networks.building.family import find_family\n"
    "arch = {'patch_size': 8, 'embed_dim': 24, 'depth': 1, 'num_heads': 2}\n"
    "model = find_family('vit').build(arch, 10, 32).eval()\n"
    "images = torch.zeros(1, 3, 32, 32)\n"
    "model(images)\n"
    "print('torch._dynamo' in sys.modules)\n"
)


def test_timm_is_imported_without_the_compiler_of_torch() -> None:
    done = run(WITHOUT_COMPILER)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]", "False"]


@pytest.mark.nightly
def test_the_compiler_can_be_imported_later() -> None:
    done = run(
        WITHOUT_COMPILER + "compiled = torch.compile(model, backend='eager')(images)\n"
        "print(torch.equal(compiled, model(images)), torch._dynamo.__file__ is not None)\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]", "False", "True True"]


@pytest.mark.nightly
def test_a_compiler_that_is_there_already_stays() -> None:
    done = run(
        "import sys\n"
        "import torch._dynamo\n"
        "before = {k: v for k, v in sys.modules.items() if k.startswith('torch._dynamo')}\n"
        "from vitscope.networks.building.timm_import import import_timm\n"
        "import_timm()\n"
        "print(all(sys.modules[name] is module for name, module in before.items()))\n"
    )
    assert done.stdout.strip() == "True", done.stderr
