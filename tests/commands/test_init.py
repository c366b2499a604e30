from pathlib import Path

import pytest
import yaml
from PIL import Image

from tests.helpers.own_network import MY_NET
from vitscope.__main__ import main
from vitscope.studies.loading import load_study


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (40, 32)).save(tmp_path / "images" / name / f"{number}.png")
    (tmp_path / "my_net.py").write_text(MY_NET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["vitscope", "init", *arguments])
    main()


def test_a_network_of_timm_gets_what_timm_says_of_its_images(folder, monkeypatch, capsys) -> None:
    init(monkeypatch, "mine", "--images", "images", "--network", "resnet26t.ra2_in1k")
    study = load_study(folder / "mine.yaml")
    data, model = study.data["mine"], study.models["network"]
    assert (data.classes, data.image_size, data.splits["test"].images) == (2, 256, 6)
    assert data.mean == (0.485, 0.456, 0.406)
    assert (model.family, model.arch["name"], model.classes) == ("timm", "resnet26t", 1000)
    said = capsys.readouterr().out
    assert "vitscope make figures/mine/fig9.pdf --config studies_dir=mine.yaml" in said
    # timm resizes to the floor of 256 / 0.94, and cuts 256 out of it.
    assert (data.resize, data.interpolation) == (272, "bicubic")
    assert "As timm says of resnet26t.ra2_in1k. It says image_size 256, mean [0.485" in said


def test_a_network_of_ones_own_has_the_size_of_the_images(folder, monkeypatch, capsys) -> None:
    init(monkeypatch, "mine.yaml", "--images", "images", "--network", "my_net.py:resnet20")
    study = yaml.safe_load((folder / "mine.yaml").read_text())
    assert study["data"]["mine"]["image_size"] == 32
    model = study["models"]["network"]
    assert (model["checkpoint"], model["label"]) == ({"made": True}, "resnet20, untrained")
    text, said = (folder / "mine.yaml").read_text(), capsys.readouterr().out
    assert "# A guess: write the size, mean and standard deviation" in text
    assert study["data"]["mine"]["resize"] == "cover"
    assert "The weights are those that resnet20 returns, untrained" in said
    assert "A guess: write the size" in said


def test_weights_that_are_given_are_not_called_untrained(folder, monkeypatch, capsys) -> None:
    (folder / "w.pth").touch()
    network = ("--network", "my_net.py:resnet20", "--weights", "w.pth")
    init(monkeypatch, "mine.yaml", "--images", "images", *network)
    model = yaml.safe_load((folder / "mine.yaml").read_text())["models"]["network"]
    assert (model["checkpoint"], model.get("label")) == ({"path": "w.pth"}, None)
    assert "untrained" not in capsys.readouterr().out


def test_only_what_a_study_reads_is_counted(folder, monkeypatch) -> None:
    cats = folder / "images" / "cat"
    Image.new("L", (40, 32)).save(cats / "0.mask.png")
    Image.new("RGB", (8, 8)).save(cats / ".hidden.png")
    (cats / "more").mkdir()
    Image.new("RGB", (8, 8)).save(cats / "more" / "0.png")
    (folder / "images" / "later").mkdir()
    init(monkeypatch, "mine", "--images", "images", "--network", "my_net.py:resnet20")
    data = load_study(folder / "mine.yaml").data["mine"]
    assert (data.classes, data.splits["test"].images, data.image_size) == (2, 6, 32)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--images", "my_net.py", "--network", "resnet26t"), "--images: there is no folder "),
        (("--images", ".", "--network", "resnet26t"), " holds no images ("),
        (("--images", "nothing", "--network", "resnet26t"), "--images: there is no folder "),
        (("--images", "images", "--network", "resnet26x"), "Did you mean 'resnet26'?"),
        (("--images", "images", "--network", "resnet26t.no"), "allowed: resnet26t.ra2_in1k."),
        (("--images", "images", "--network", "no_net.py:no"), "no_net.py is not a file of Python"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_no_file(folder, monkeypatch, arguments, says) -> None:
    with pytest.raises(SystemExit) as ended:
        init(monkeypatch, "mine", *arguments)
    assert says in str(ended.value)
    assert not (folder / "mine.yaml").exists()


def test_a_study_that_is_there_is_not_replaced(folder, monkeypatch) -> None:
    (folder / "mine.yaml").write_text("title: mine")
    with pytest.raises(SystemExit, match=r"mine.yaml is there already"):
        init(monkeypatch, "mine", "--images", "images", "--network", "resnet26t")
    assert (folder / "mine.yaml").read_text() == "title: mine"
