import re
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.helpers.networks import described
from tests.helpers.refusals import refusal
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.networks.building import own_code
from vitscope.networks.building.family import prepare_family_arch
from vitscope.networks.building.networks import empty_network, find_family
from vitscope.networks.building.own_code import explain_network_code_failure
from vitscope.networks.checkpoints.conversion import convert, convert_made, load_converted_model
from vitscope.networks.finding.blocks import list_blocks
from vitscope.package_data import ROOT

# It holds all that a network without values could not: computed buffers, and plain tensors.
NET = """
    import torch
    from torch import nn
    from layers import Branch

    class Net(nn.Module):
        def __init__(self, width, classes):
            super().__init__()
            self.register_buffer("scale", torch.linspace(1, 2, width), persistent=False)
            self.shift = torch.full((width,), float(torch.ones(3).sum()))
            self.stem = nn.Conv2d(3, width, 4, 4)
            self.branch = Branch(width)
            self.head = nn.Linear(width, classes)

        def forward(self, x):
            x = self.stem(x)
            x = x + self.branch(x)
            return self.head(x.mean((2, 3)) * self.scale + self.shift)

    def net(width=4, *, classes):
        return Net(width, classes)
"""
LAYERS = """
    from torch import nn

    class Branch(nn.Sequential):
        def __init__(self, width):
            super().__init__(nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
"""
ARCH = {"file": "net.py", "make": "net", "classes": 5}
IMAGES = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, net=NET, layers=LAYERS)


@pytest.fixture(autouse=True)
def alone():
    """Every test imports anew, and leaves nothing behind."""
    yield
    own_code._end_own_code_imports()


def ready(folder: Path, **arch: Any) -> dict[str, Any]:
    return prepare_family_arch("python", arch, folder, "own.yaml: models.m.arch")


def network(folder: Path, **arch: Any) -> dict[str, Any]:
    return described(16) | {"family": "python", "arch": ready(folder, **arch), "classes": 5}


def build(folder: Path, **arch: Any) -> Any:
    return find_family("python").build(ready(folder, **arch), 5, 16)


def refused(ask: Callable[..., object], folder: Path, **arch: Any) -> str:
    """Return the sentence of a refusal, less the place of the folder."""
    said = refusal(ask, folder, **arch)
    return said.replace(f"{folder}/", "").removeprefix("own.yaml: models.m.arch")


def code(folder: Path, **arch: Any) -> str:
    return str(ready(folder, **arch)["code"])


def test_reading_runs_nothing(folder: Path) -> None:
    write(folder, net="raise SystemExit('it ran')\ndef net(): ...", layers="import net")
    arch = ready(folder, file="net.py", make="net")
    assert arch["file"] == str(folder / "net.py")
    assert arch["module"] == "net"
    assert len(arch["code"]) == 16
    assert "net" not in sys.modules


def test_made_weights_are_what_is_loaded(folder: Path, tmp_path: Path) -> None:
    entry = network(folder, **ARCH)
    # Building leaves the random state.
    before = torch.get_rng_state()
    empty_network(entry)
    assert torch.equal(torch.get_rng_state(), before)
    # Nothing is written beside the code.
    assert sorted(path.name for path in folder.iterdir()) == ["layers.py", "net.py"]
    path = tmp_path / "out" / "net.safetensors"
    convert_made(entry, path, label="Net", origin="made")
    torch.manual_seed(0)
    made = find_family("python").build(entry["arch"], 5, 16).eval()
    loaded = load_converted_model(path, entry)
    assert not loaded.training
    with torch.inference_mode():
        assert torch.equal(loaded(IMAGES), made(IMAGES))
    written = path.read_bytes()
    torch.manual_seed(1)
    convert_made(entry, path, label="Net", origin="made")
    assert path.read_bytes() == written
    assert len(TensorFile(path).metadata["source_sha256"]) == 64


def test_a_checkpoint_is_loaded_over_what_was_made(folder: Path, tmp_path: Path) -> None:
    entry = network(folder, **ARCH)
    torch.manual_seed(7)
    trained = find_family("python").build(entry["arch"], 5, 16).eval()
    torch.save({"state_dict": trained.state_dict()}, tmp_path / "net.pth")
    path = tmp_path / "out" / "net.safetensors"
    convert(tmp_path / "net.pth", entry, path, label="Net", origin="here")
    with torch.inference_mode():
        assert torch.equal(load_converted_model(path, entry)(IMAGES), trained(IMAGES))


def test_the_code_is_the_file_and_what_it_imports_beside_it(folder: Path) -> None:
    deep = {"deep/__init__": "", "deep/a": "from . import b", "deep/b": "", "deep/c": ""}
    write(folder, other="", **deep)
    write(folder, net=f"{dedent(NET)}\ndef late():\n    import deep.a\n")
    before = code(folder, **ARCH)
    for file in ("other", "deep/c"):
        (folder / f"{file}.py").write_text("x = 1")
        assert code(folder, **ARCH) == before, file
    for file in ("net", "layers", "deep/__init__", "deep/a", "deep/b"):
        path = folder / f"{file}.py"
        text = path.read_text()
        path.write_text(f"{text}\nx = 1\n")
        assert code(folder, **ARCH) != before, file
        path.write_text(text)
    assert code(folder, **ARCH) == before
    # What the function is called with is in the arch, and not in the digest of the code.
    assert code(folder, **ARCH | {"width": 8}) == before


def test_a_file_in_a_package_imports_as_part_of_it(tmp_path: Path) -> None:
    files = {
        "models/__init__": "",
        "models/net": dedent(NET).replace("from layers", "from .layers"),
        "models/layers": f"import models.sizes\n{dedent(LAYERS)}",
        "models/sizes": "",
    }
    write(tmp_path, **files)
    by_file = ready(tmp_path, **ARCH | {"file": "models/net.py"})
    named = {key: value for key, value in ARCH.items() if key != "file"}
    by_module = ready(tmp_path, module="models.net", **named)
    assert by_file == by_module
    assert isinstance(find_family("python").build(by_file, 5, 16), nn.Module)
    (tmp_path / "models" / "sizes.py").write_text("x = 1")
    assert code(tmp_path, **ARCH | {"file": "models/net.py"}) != by_file["code"]


def test_a_study_within_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "pack/__init__": "",
        "pack/net": dedent(NET).replace("from layers", "from .deeper.layers"),
        "pack/deeper/__init__": "",
        "pack/deeper/layers": LAYERS,
    }
    monkeypatch.chdir(write(tmp_path, **files) / "pack" / "deeper")
    arch = ready(Path(), **ARCH | {"file": "../net.py"})
    assert (arch["file"], arch["module"]) == ("../net.py", "pack.net")
    assert isinstance(find_family("python").build(arch, 5, 16), nn.Module)


def test_an_installed_module() -> None:
    arch = ready(Path(), module="torchvision.models.resnet", make="resnet18", num_classes=7)
    assert find_family("python").build(arch, 7, 32).eval()(torch.rand(1, 3, 32, 32)).shape == (1, 7)
    # It stays as it was imported by others: what is installed is never imported twice.
    module = sys.modules["torchvision.models.resnet"]
    own_code._end_own_code_imports()
    assert sys.modules["torchvision.models.resnet"] is module


def test_two_networks_may_have_files_of_the_same_name(tmp_path: Path) -> None:
    for width in (2, 3, 2):
        folder = write(tmp_path / str(width), layers=LAYERS)
        write(folder, net=dedent(NET).replace("width=4", f"width={width}"))
        assert build(folder, **ARCH).stem.out_channels == width
    assert sys.path.count(str(tmp_path / "2")) == 1
    assert str(tmp_path / "3") not in sys.path


@pytest.mark.parametrize(
    ("arch", "sentence"),
    [
        (
            {"file": "ne.py"},
            ".file: ne.py is not a file of Python: give the path of a file NAME.py that is there, "
            "relative to the study or absolute. Did you mean 'net.py'?",
        ),
        ({"file": "."}, ".file: {folder} is not a file of Python: give the path of a file"),
        ({"file": "x" * 5000}, ".file: x"),
        ({"file": "~nobody/net.py"}, ".file: ~nobody/net.py is not a file of Python: give the"),
        ({"module": "nett.py"}, ".module: the module nett.py is not there: give one that lies"),
        ({"module": "math"}, ".module: the module math is not written in Python: give one that"),
    ],
)
def test_a_wrong_arch_is_refused(folder: Path, arch: dict[str, Any], sentence: str) -> None:
    given = ARCH | arch
    if "module" in arch:
        del given["file"]
    said = refused(ready, folder, **{key: each for key, each in given.items() if each is not None})
    assert said.startswith(sentence.format(folder=folder))


MORE = """
    from functools import partial, wraps
    from layers import *

    class Plain(Net):
        pass

    @wraps(net)
    def wrapped(**keywords): return net(**keywords)

    half = partial(net, classes=3)
"""


@pytest.mark.parametrize(
    ("arch", "sentence"),
    [
        (
            {"make": "nett", "classes": 5},
            r"net\.py has no function 'nett'; it has Net, net, Plain, wrapped. Did you mean 'net'",
        ),
        (
            {"make": "net", "widht": 3, "classes": 5},
            r"net\.py, line 20: net is called with widht, classes and takes width, classes: got an "
            r"unexpected keyword argument 'widht'\. Did you mean 'width'\?",
        ),
        (
            {"make": "net"},
            r"net\.py, line 20: net is called with nothing and takes width, classes: missing a "
            r"required .*argument: 'classes'\.",
        ),
        # As the function that it wraps, and as the class that it inherits from.
        (
            {"make": "wrapped", "classs": 3},
            r"net\.py, line 20: net is called with classs and takes",
        ),
        (
            {"make": "Plain", "width": 3},
            r"net\.py, line 7: Plain is called with width and takes width, classes: missing a "
            r"required argument: 'classes'\.",
        ),
        (
            {"make": "half", "classes": 5, "depth": 2},
            r".*it is called with classes, depth and take",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_refused_where_the_code_runs(
    folder: Path, arch: dict[str, Any], sentence: str
) -> None:
    write(folder, net=dedent(NET) + dedent(MORE))
    # Reading the study refuses nothing, since it imports nothing.
    assert ready(folder, file="net.py", **arch)
    assert re.match(sentence, refused(build, folder, file="net.py", **arch))


def test_what_a_signature_takes_is_called(tmp_path: Path) -> None:
    """Its keywords may be any, its name may be made when it is imported, or depend on what is."""
    text = """
        from torch import nn
        def any_net(**sizes): return nn.Linear(**sizes)
        try:
            from nowhere import net
        except ImportError:
            def net(width): return nn.Linear(width, width)
        globals()["made"] = net
    """
    write(tmp_path, net=text)
    linear = build(tmp_path, file="net.py", make="any_net", in_features=2, out_features=3)
    assert (linear.in_features, linear.out_features) == (2, 3)
    for name in ("net", "made"):
        assert build(tmp_path, file="net.py", make=name, width=4).in_features == 4


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"net": "def net(classes:\n"}, ": net.py, line 1: '(' was never closed: correct it."),
        ({"layers": "x = 1\nif x\n"}, ": layers.py, line 2: expected ':': correct it."),
        ({"net": "def net(classes): return 3"}, "net.py: net returned an object of the type int"),
        (
            {"layers": "x = 1\n\nraise ValueError('no\\nlayers')"},
            "layers.py, line 3, in <module>: ValueError: no.",
        ),
        (
            {"net": "from layers import Brunch\n\ndef net(classes): ..."},
            "net.py, line 1, in <module>: ImportError: cannot import name 'Brunch' from 'layers'",
        ),
        (
            {"net": "from torch import nn\ndef net(classes):\n    return nn.Linear(classes, 'a')"},
            "net.py, line 3, in net: TypeError: empty(): argument",
        ),
        (
            {"net": "import sys\ndef net(classes): sys.exit('bye')"},
            "net.py, line 2, in net: SystemExit: bye.",
        ),
    ],
)
def test_errors_have_a_file_and_a_line(folder: Path, files: dict[str, str], sentence: str) -> None:
    assert refused(build, write(folder, **files), **ARCH).startswith(sentence)


def test_an_error_in_the_forward_pass_is_reported(folder: Path) -> None:
    error = failure(build(folder, **ARCH), torch.rand(1, 1, 16, 16))
    assert isinstance(error, RuntimeError)
    assert str(own_code.explain_own_code_error(error)).startswith(
        f"{folder}/net.py, line 16, in forward: RuntimeError: Given groups=1"
    )
    assert own_code.explain_own_code_error(ValueError("of another place")) is None


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    write(tmp_path, torch="def net(): ...")
    assert refused(build, tmp_path, file="torch.py", make="net").startswith(
        "torch.py has the name of the module torch, which is loaded already from "
    )


def test_weights_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    write(tmp_path, net="import torch\ndef net(): return torch.nn.Linear(2, 2).to(torch.complex64)")
    entry = network(tmp_path, file="net.py", make="net")
    with pytest.raises(VitscopeError, match=r"holds weight as torch\.complex64, which is not"):
        convert_made(entry, tmp_path / "out", label="Net", origin="made")


class Scaled(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images * self.scale


class Recording(TorchDispatchMode):
    """Stands for what records the operations of a network."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return function(*args, **(kwargs or {}))


def record() -> None:
    with Recording():
        nn.Sequential(nn.Flatten(7))(torch.zeros(1, 2))


def run_by_vitscope(code: str, **names: object) -> Callable[..., None]:
    """Return a function that runs code as if it were vitscope's own."""
    compiled = compile(code, str(ROOT / "vitscope" / "some.py"), "exec")
    return lambda *_: exec(compiled, names)


def failure(function: Callable[..., object], *arguments: object) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function(*arguments)
    return caught.value


LINE = Scaled.forward.__code__.co_firstlineno + 1
LAYERS_APART = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 5))
ONE_LAYER = nn.Sequential(nn.Linear(2, 3))
CORRECT = ": correct it, or how the study says to build it."


@pytest.mark.parametrize(
    ("fail", "begins", "ends"),
    [
        (
            lambda: nn.Sequential(nn.Identity(), nn.Sequential(Scaled()))(torch.zeros(1)),
            f"the module '1.0' (Scaled) of the network fails at {__file__}, line {LINE}: "
            f"AttributeError: 'Scaled' object has no attribute 'scale'{CORRECT}",
            "",
        ),
        # The network itself has no name.
        (lambda: Scaled()(torch.zeros(1)), "the module (Scaled) of the network fails at ", ""),
        # Of torch's modules nobody has to know the line: it is where they are called.
        (
            lambda: LAYERS_APART(torch.zeros(1, 2)),
            f"the module '1' (Linear) of the network fails at {__file__}, line ",
            f"RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x3 and 4x5){CORRECT}",
        ),
        # Operations may be recorded.
        (record, f"the module '0' (Flatten) of the network fails at {__file__}, line ", CORRECT),
        # Torch alone may fail in a network that vitscope runs.
        (
            run_by_vitscope("network(1)", network=ONE_LAYER),
            "the module '0' (Linear) of the network fails: TypeError: ",
            CORRECT,
        ),
        # A network of another family.
        (
            run_by_vitscope("network.patch_embed", network=ONE_LAYER),
            "the network's module (Sequential) has no 'patch_embed', which models of its family "
            "have: choose the family that fits it.",
            "",
        ),
    ],
    ids=["attribute", "no name", "shapes", "recorded", "torch alone", "another family"],
)
def test_failures_are_explained(fail: Callable[[], object], begins: str, ends: str) -> None:
    sentence = str(explain_network_code_failure(failure(fail)))
    assert sentence.startswith(begins)
    assert sentence.endswith(ends)


def test_what_fails_elsewhere_is_not_explained() -> None:
    assert explain_network_code_failure(failure(lambda: 1 / 0)) is None
    network = nn.Identity()
    network.register_forward_hook(run_by_vitscope("1 / 0"))
    # Our own mistakes are shown in full, wherever they happen.
    assert explain_network_code_failure(failure(network, torch.zeros(1))) is None


def test_a_network_that_takes_other_images() -> None:
    """Recorded: what is then between the network and torch is none of its code."""
    network = nn.Sequential(nn.Conv2d(1, 2, 3))
    sentence = refusal(list_blocks, "net", network, described(8) | {"classes": None})
    assert sentence.startswith("models.net: the module '0' (Conv2d) of the network")
    assert sentence.endswith(
        " Or correct the data set, if the network takes other images than those of its "
        "`image_size: 8` and of 3 channels, as many as `mean` has."
    )


def test_images_are_not_blamed_for_what_a_network_lacks() -> None:
    sentence = refusal(list_blocks, "net", Scaled(), described(8) | {"classes": None})
    assert sentence.endswith(f"AttributeError: 'Scaled' object has no attribute 'scale'{CORRECT}")
