import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import nn

from tests.helpers.own_network import ARCH, MY_NET, my_network
from tests.helpers.own_network import STUDY as MINE
from tests.helpers.studies import mini_with
from vitscope.__main__ import main
from vitscope.commands.check import _check_claims
from vitscope.errors import VitscopeError
from vitscope.networks.building.networks import drawn_network
from vitscope.networks.finding.cut_points import Addition, CutPoint, Join
from vitscope.networks.finding.search import search_for_cut_points
from vitscope.networks.running.checking import check_network
from vitscope.networks.running.joins import prove_capture
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.batches import seeded

OWN = MINE["models"]["mine"]
STUDY: dict[str, Any] = MINE | {
    "models": {
        "mine": OWN | {"checkpoint": {"path": "my_net.pth"}},
        "hub": {
            "family": "timm",
            "arch": {"name": "test_vit", "drop_path_rate": 0.1},
            "data": "mine",
            "checkpoint": {"timm": "test_vit.r160_in1k"},
        },
        "other": OWN | {"checkpoint": {"path": "other.pth"}},
        "branch": OWN | {"points": [{"module": "layer1.0.conv1"}]},
        "nine": OWN | {"arch": {"file": "my_net.py", "make": "nine"}},
        "plain": OWN | {"arch": {"file": "my_net.py", "make": "Plain"}},
    },
    "figures": {"fig9": {"kind": "feature_variance", "models": ["mine", "hub"]}},
}
NETWORK = {"family": "resnet", "arch": ARCH, "mean": [0.0] * 3, "classes": 10, "image_size": 32}
NINE = """

def nine():
    return find_family("resnet").build({"block": "basic", "blocks": [1] * 4, "width": 4}, 9, 32)
"""
PLAIN = """

from torch import nn
from torch.nn.functional import max_pool2d, relu

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)
        self.head = nn.Linear(8 * 6 * 6, 10)

    def forward(self, x):
        for layer in (self.one, self.two):
            x = max_pool2d(relu(layer(x)), 2)
        return self.head(x.flatten(1))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    (folder / "my_net.py").write_text(MY_NET + NINE + PLAIN)
    torch.save(my_network().state_dict(), folder / "my_net.pth")
    torch.save({"head.weight": torch.zeros(2, 2)}, folder / "other.pth")
    return folder


Check = Callable[..., tuple[object, list[str]]]


@pytest.fixture
def check(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Check:
    """Run the command in the folder; return what it exits with, and the lines that it prints."""
    monkeypatch.chdir(place)

    def run(*arguments: str) -> tuple[object, list[str]]:
        monkeypatch.setattr(sys, "argv", ["vitscope", "check", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        return code, capsys.readouterr().out.splitlines()

    return run


def test_every_model_ends_in_a_line(check: Check) -> None:
    code, lines = check("own.yaml")
    assert code == 1
    verdicts = dict(
        line.split(": ", 1) for line in lines if ": right: " in line or ": wrong: " in line
    )
    assert lines[-6:] == [f"{name}: {said}" for name, said in verdicts.items()]
    assert verdicts["mine"] == (
        "right: 5 cut points (1 stem, 4 conv); 0.0199 million parameters, 1.094 million "
        "multiply-adds; the weights fit; read: 4 of 4 sums, 100% of the operations; "
        "4 branches silenced"
    )
    assert verdicts["hub"].startswith("right: 13 cut points (1 stem, 6 msa, 6 mlp); ")
    assert "weights not compared, since they are to be downloaded" in verdicts["hub"]
    assert "; read: 12 of 12 sums, 6 of 6 attentions, 100% of the operations; " in verdicts["hub"]
    assert verdicts["other"].startswith("wrong: other.pth does not fit the model (missing: ")
    assert (
        "wrong: points: the output of 'layer1.0.conv1' is not the whole stream"
        in verdicts["branch"]
    )
    assert (
        "wrong: the network returns 9 values for an image, where its data have 10 classes"
        in verdicts["nine"]
    )
    # Its poolings are functions, which torch shows otherwise where jobs read them.
    assert verdicts["plain"].startswith("right: 4 cut points (1 stem, 2 pool, 1 conv); ")
    assert all(verdicts[name].startswith("wrong: ") for name in ("other", "branch", "nine"))
    table = lines[lines.index("mine (mine)") + 1 :][:6]
    cells = [line.split() for line in table]
    assert cells[0] == [
        *["cut", "point", "kind", "stage", "map", "operations", "parameters", "found", "as"]
    ]
    assert [row[1:5] for row in cells[1:]] == [
        ["stem", "stem", "0", "4x32x32"],
        ["layer1.0", "conv", "1", "4x32x32"],
        ["layer2.0", "conv", "2", "8x16x16"],
        ["layer3.0", "conv", "3", "16x8x8"],
        ["layer4.0", "conv", "4", "32x4x4"],
    ]


def test_no_code_of_a_study_runs_without_need(check: Check, place: Path) -> None:
    canary = f"\nopen({str(place / 'ran')!r}, 'w').close()\n"
    (place / "loud.py").write_text(MY_NET + canary)
    loud = OWN | {"arch": OWN["arch"] | {"file": "loud.py"}}
    models = {
        "mine": loud | {"checkpoint": {"path": "my_net.pth"}},
        "made": loud | {"checkpoint": {"made": True}},
        "lost": loud | {"checkpoint": {"path": "lost.pth"}},
        "hub": STUDY["models"]["hub"],
    }
    study = STUDY | {"models": models}
    (place / "loud.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    code, lines = check("loud.yaml", "mine", "made", "hub", "--without-code")
    assert code == 0
    said = "not run: loud.py is read as text alone"
    weights = len(my_network().state_dict())
    assert f"mine: {said}; its checkpoint has {weights} weights" in lines
    assert f"made: {said}" in lines
    assert any(line.startswith("hub: right: ") for line in lines)
    code, lines = check("loud.yaml", "lost", "--without-code")
    assert code == 1
    assert re.search(r"there is no file \S*lost\.pth", lines[-1])
    assert not (place / "ran").exists()
    # The danger is real.
    check("loud.yaml", "mine")
    assert (place / "ran").exists()


def test_calls_that_do_not_fit_are_wrong(check: Check, place: Path) -> None:
    """A study that names them is read; what they are is seen where the code is imported."""
    (place / "tails.py").write_text("def measure(maps, order=4): ...\n")
    arch = OWN["arch"] | {"widht": 3}
    measure = {"file": "tails.py", "keywords": {"ordre": 2}}
    study = STUDY | {
        "models": {"mine": OWN | {"arch": arch, "checkpoint": {"path": "my_net.pth"}}},
        "measures": {"tails": measure, "peaks": {"file": "tails.py", "keywords": {"order": 2}}},
        "figures": {"one": {"kind": "tails", "models": ["mine"]}},
    }
    (place / "calls.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    code, lines = check("calls.yaml")
    assert code == 1
    line = MY_NET[: MY_NET.index("def resnet20")].count("\n") + 1
    assert lines == [
        f"mine: wrong: my_net.py, line {line}: resnet20 is called with widht and takes nothing: "
        "got an unexpected keyword argument 'widht'.",
        "measures.tails: wrong: tails.py, line 1: measure is called with what it measures, ordre "
        "and takes maps, order: got an unexpected keyword argument 'ordre'. Did you mean 'order'?",
    ]
    code, lines = check("calls.yaml", "--without-code")
    assert (code, len(lines)) == (0, 1)


def test_images_that_are_not_there(check: Check, place: Path) -> None:
    study = {**STUDY, "data": {"mine": {**STUDY["data"]["mine"]}}}
    study["data"]["mine"]["source"] = {"kind": "folder", "path": "images"}
    study["models"] = {"mine": STUDY["models"]["mine"]}
    study["figures"] = {"fig9": {"kind": "feature_variance", "models": ["mine"]}}
    (place / "folder.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    code, lines = check("folder.yaml")
    assert code == 1
    right, wrong = lines[-2:]
    assert right.startswith("mine: right: ")
    assert wrong.startswith("data.mine: wrong: data.mine.source.path: ")
    assert "images" in wrong


def test_what_is_to_be_trained_is_checked_with_its_first_weights(check: Check, place: Path) -> None:
    study = yaml.safe_load((BUNDLED_STUDIES / "mini.yaml").read_text())
    trained = {"path": "results/ours/training/vit/end.safetensors"}
    model = {**study["models"]["vit"], "checkpoint": trained, "snapshots": {}}
    del model["history"]
    study |= {"models": {"vit": model}, "videos": {}, "buildups": {}}
    study["figures"] = {"fig9": {"kind": "feature_variance", "models": ["vit"]}}
    (place / "ours.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    code, lines = check("ours.yaml")
    assert (code, lines[-1][:12]) == (0, "vit: right: ")
    assert "with its first weights, since it is to be trained here; " in lines[-1]


def test_the_first_weights_are_those_that_training_begins_with() -> None:
    with seeded(7):
        trained = my_network().state_dict()
    checked = drawn_network(NETWORK, 7).state_dict()
    assert all(torch.equal(checked[name], tensor) for name, tensor in trained.items())
    name = "layer0.0.weight"
    assert not torch.equal(drawn_network(NETWORK).state_dict()[name], checked[name])


def test_a_model_that_is_not_there(check: Check) -> None:
    said, _ = check("own.yaml", "min")
    assert "found the model 'min', allowed: mine, hub, other, branch, nine, plain." in str(said)


class Adds(nn.Module):
    """A stream that a second branch joins, so that its proof can fail."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.one = nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(4, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        stream = self.stem(images)
        stream = stream + self.one(stream)
        logits: torch.Tensor = self.head(stream.mean((2, 3)))
        return logits


def test_a_join_that_takes_the_branch_for_the_stream_is_found_wrong() -> None:
    torch.manual_seed(0)
    model, images = Adds().eval(), torch.randn(2, 3, 8, 8)
    stem, block = search_for_cut_points(model, images).points
    assert prove_capture(model, [stem, block], images).wrong == []
    assert isinstance(block.join, Join)
    (addition,) = block.join.additions
    swapped = Join((Addition(addition.operation, addition.branch, addition.stream),), True)
    wrong = CutPoint(
        block.name, "conv", 1, block.module, block.at, block.layout, block.operation, swapped
    )
    assert prove_capture(model, [stem, wrong], images).wrong == [
        f"without the branch of '{block.name}' the stream is another than before it"
    ]


def test_what_is_no_model_is_refused_with_its_name() -> None:
    with pytest.raises(VitscopeError, match=r"own.yaml: models.net.checkpoint.path: there is no"):
        check_network("net", NETWORK, {}, {"path": "none"}, Path("own.yaml"), Path())


@pytest.mark.parametrize("path", sorted(BUNDLED_STUDIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_claim_of_a_bundled_study_has_too_few_batches(path: Path) -> None:
    assert _check_claims(load_study(path)) == {}


@pytest.mark.parametrize(
    ("kind", "analysis", "sentence"),
    [
        (
            "hessian",
            {"hessian": {"sizes": [6, 100], "batches": [20, 5]}},
            "analysis.hessian.batches: 5 of 6 batches: too few to decide any claim of the figures "
            "of 'hessian': raise it to 6 or more.",
        ),
        ("hessian_by_batch", {"hessian": {"batches": 5}}, None),
        (
            "curvature",
            {"curvature": {"batches": 3}},
            "analysis.curvature.batches: 3 of 6 batches: too few to decide any claim of the "
            "figures of 'curvature': raise it to 6 or more.",
        ),
        ("curvature_by_layer", {"curvature": {"batches": 3}}, None),
        (
            "cka",
            {"images": 256, "cka": {"batch_size": 64}},
            "analysis.cka.batch_size: 4 of 20 batches of 64 images: too few to decide any claim of "
            "the figures of 'cka': lower it to 12, or raise analysis.images.",
        ),
    ],
)
def test_claims_that_are_never_decided_are_refused(
    tmp_path: Path, kind: str, analysis: dict[str, Any], sentence: str | None
) -> None:
    figures = {"one": {"kind": kind, "models": ["vit", "resnet"]}}
    path = mini_with(tmp_path, figures=figures, analysis={"augmented": {"images": 2000}} | analysis)
    found = _check_claims(load_study(path))
    expected = {f"claims of {kind}": ("wrong", f"{path}: {sentence}")} if sentence else {}
    assert found == expected


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ([{"at": "blocks.0.attn", "how": how} for how in ("mean", "resample")], "right"),
        ([{"at": "blocks.0.attn", "of": "heads", "heads": [0]}, {"at": "blocks.9.attn"}], "wrong"),
    ],
)
def test_interventions_are_tried(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    changes: list[Any],
    verdict: str,
) -> None:
    models = yaml.safe_load((BUNDLED_STUDIES / "mini.yaml").read_text(encoding="utf-8"))["models"]
    changed = models["vit_scenes_mean"] | {"interventions": changes}
    path = mini_with(tmp_path, models=models | {"vit_scenes_mean": changed})
    monkeypatch.setattr(sys, "argv", ["vitscope", "check", str(path), "vit_scenes_mean"])
    if verdict == "wrong":
        with pytest.raises(SystemExit):
            main()
        said = "wrong: interventions.1: at: found 'blocks.9.attn', allowed:"
    else:
        main()
        said = "interventions: 2, tried"
    assert said in capsys.readouterr().out
