import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.counted_latents import counted_latents
from tests.helpers.every_job import takes_of
from tests.helpers.rules import ROOT, rules
from tests.helpers.studies import FROZEN
from vitscope.files.strict_yaml import load_yaml
from vitscope.files.tables import read_metadata
from vitscope.jobs.job import JOBS, Job, Network, Request, find_job
from vitscope.measures.hessian.measure import LEAST_VECTORS
from vitscope.measures.lanczos import LARGEST_BASIS
from vitscope.networks.building.networks import empty_network
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.cut_points import BLOCKS
from vitscope.planning import costs_of_job
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

BEFORE = costs_of_job.COUNTED_BEFORE

MINI, PAPER = (load_study(BUNDLED_STUDIES / f"{name}.yaml") for name in ("mini", "paper"))
# A request is of this many times what was measured at least, and at most.
LEAST, MOST = 1.5, 4


@cache
def network(study: str, model: str) -> Network:
    return costs_of_job.count_network({"mini": MINI, "paper": PAPER}[study], model)


# A job and what is known of it, as costs are asked for.
Asked = tuple[Job, Request]


def ask(name: str, study: Study, names: dict[str, str], **known: Any) -> Asked:
    job = find_job(name)
    return job, replace(costs_of_job.request_of(study, names), **known)


def job(study: Study, name: str, images: int | None = None, **names: str) -> Asked:
    """Return a job of a model whose network is known."""
    return ask(name, study, names, network=network(study.name, names["model"]), images=images)


def minutes(asked: Asked) -> int:
    """Return the time of a job beyond the least."""
    return costs_of_job.minutes(*asked) - costs_of_job.LEAST_MINUTES


def read(name: str, names: dict[str, str], inputs: dict[str, Any], study: Study = MINI) -> Request:
    """Return a job with what its inputs say."""
    return costs_of_job.with_inputs(*ask(name, study, names), inputs)


def file_of(path: Path, size: int) -> str:
    """Make a file of so many bytes, which take no room."""
    with path.open("wb") as file:
        file.truncate(size)
    return str(path)


def test_every_job_is_short_or_says_what_it_takes() -> None:
    for name, rule in rules().items():
        if rule.part("script"):
            # Snakemake hands on what a rule asks for, and not that it is local.
            local = "localrule: True" in rule.text
            assert local != ("requests_of(" in rule.part("resources")), name
            # What needs the network is local, and what runs torch is not.
            assert local or not name.startswith("fetch_")
            without_torch = "torch=False" in rule.part("wildcard_constraints")
            torch = not without_torch and any(each.torch for each in takes_of(str(rule.job)))
            assert not (local and torch), name


def test_rules_ask_for_what_their_own_jobs_take() -> None:
    for name, rule in rules().items():
        asked = re.findall(r"requests_of\((\"\w+\"(?:, alike=\"\w+\")?)", rule.part("resources"))
        done = re.findall(r"values_and_code_of\((\"\w+\"(?:, alike=\"\w+\")?)", rule.part("params"))
        assert asked in ([], done), name


def test_rules_that_run_a_network_may_have_a_gpu_and_no_others() -> None:
    asking = {rule.job for rule in rules().values() if "gpu_of" in rule.part("resources")}
    assert asking == {name for name in JOBS if any(each.work for each in takes_of(name))}


def test_a_network_is_read_from_its_block_table(tmp_path: Path) -> None:
    settings = MINI.network("vit")
    model = empty_network(settings)
    blocks = list_blocks("vit", model, settings)
    path = tmp_path / "blocks.parquet"
    BLOCKS.write(blocks.table, path, blocks.metadata())
    found = costs_of_job.network_cost_of_blocks(BLOCKS.read(path), read_metadata(path))
    assert found == network("mini", "vit")
    assert found.operations == blocks.table["operations"].sum() + blocks.head.operations
    assert found.weights == 4 * sum(p.numel() for p in model.parameters())
    asking = read("predict", {"model": "vit", "split": "test"}, {"blocks": path})
    assert asking.network == found


def test_images_are_counted_by_the_size_of_their_file(tmp_path: Path) -> None:
    # Labels, places and sums are of 24 bytes for an image; there is a header besides.
    images = file_of(tmp_path / "split", 2000 * (3 * 32**2 + 24) + 1000)
    asking = read("predict", {"model": "vit", "split": "test"}, {"images": images})
    assert asking.images == pytest.approx(2000, rel=0.01)


# Seconds of one image on one thread of the machine that rates are of, an AMD EPYC of two cores:
# processor time of the scripts but for their start, on 64 or 128 images. A pass; all lesions of an
# image; a point of a landscape, in bfloat16.
SECONDS = {
    "resnet_50": (0.032, 0.147, 0.0110),
    "vit_ti": (0.047, 0.584, 0.0256),
    "swin_ti": (0.043, 0.439, 0.0148),
}


@pytest.mark.parametrize("name", SECONDS)
def test_models_of_the_paper_have_the_time_that_they_take(name: str) -> None:
    one, lesions, point = SECONDS[name]
    taken = {
        ("extract_latents", ""): 250 * one,
        ("predict", ""): 10_000 * one,
        ("measure", "frequency_noise"): 10_000 * 28 * one,
        ("measure", "lesion"): 10_000 * lesions,
        ("measure", "robustness"): 10_000 * 6 * one,
        # Three rows of 21 points.
        ("measure", "landscape"): 1024 * 63 * point,
    }
    for (rule, measure), seconds in taken.items():
        names = {"model": name, "split": "test", "part": "0", "measure": measure, "snapshot": "end"}
        asked = 60 * minutes(job(PAPER, rule, 10_000, **names))
        # Requests are of whole minutes, and a job has its start besides.
        assert LEAST * seconds <= asked <= MOST * (seconds + costs_of_job.START_WITH_TORCH) + 60, (
            measure
        )


def test_a_shard_takes_as_long_as_was_measured() -> None:
    """The passes, writing and the start: 17.3 seconds for 256 images, by docs/scale.md."""
    asked = job(PAPER, "extract_latents", model="vit_ti", part="0")
    assert costs_of_job.seconds(*asked) == pytest.approx(17.3 * 250 / 256, rel=0.15)


def test_a_large_model_has_the_time_that_it_takes_on_paper() -> None:
    """ViT-B/16 on all of ImageNet's validation images: 9.8 hours, by docs/scale.md."""
    model = replace(PAPER.models["vit_tiny_imagenet"], arch={"name": "vit_base_patch16_224"})
    study = replace(PAPER, name="large", models={"large": model})
    names, taken = {"model": "large", "split": "test"}, costs_of_job.count_network(study, "large")
    asking = ask("predict", study, names, network=taken, images=50_000)
    assert LEAST * 9.8 <= costs_of_job.minutes(*asking) / 60 <= MOST * 9.8


def test_a_gpu_is_asked_for_by_its_own_speed() -> None:
    names, taken = {"model": "vit_ti", "split": "test"}, network("paper", "vit_ti")
    found, speed = {}, costs_of_job.OPERATIONS_PER_SECOND
    for device in speed:
        study = replace(PAPER, device=device)
        asking = ask("predict", study, names, network=taken, images=1_000_000)
        found[device] = minutes(asking)
    assert found["auto"] == found["cpu"]
    assert found["cpu"] == pytest.approx(found["cuda"] * speed["cuda"] / speed["cpu"], rel=0.05)


def imagenet(images: int | None) -> Study:
    """Return a study of some images of ImageNet, or of all."""
    data = PAPER.data["imagenet"]
    selection = replace(data.splits["test"], images=images)
    return replace(PAPER, data={"imagenet": replace(data, splits={"test": selection})})


PIXELS = {"dataset": "imagenet", "split": "test", "part": "0"}


def test_all_images_of_imagenet_have_the_time_to_be_corrupted() -> None:
    asking = ask("corrupt_images", imagenet(None), PIXELS, images=50_000)
    # Of 4 images, at all severities, each took 0.15 seconds.
    taken = 50_000 * 0.15
    assert LEAST * taken <= 60 * costs_of_job.minutes(*asking) <= MOST * taken


def test_images_without_a_model_have_time_by_their_pixels() -> None:
    # A photograph of 500x400 pixels took 2.5 ms; one of 4000x3000 took 0.13 s, 50,000 two hours.
    building = minutes(ask("build_split", imagenet(None), PIXELS))
    assert 60 * building >= LEAST * 50_000 * 0.0025
    assert 4 * building >= 50_000 * 0.13 / 60
    few = minutes(ask("build_split", imagenet(10_000), PIXELS))
    assert building == pytest.approx(5 * few, abs=5)
    # An image of 32 pixels took 0.11 ms, one of 224 pixels 0.83.
    fit = PAPER.sections["fit"] | {"images": 1_000_000}
    study = replace(PAPER, sections={**PAPER.sections, "fit": fit})
    for name, seconds in {"vit_ti": 0.000_11, "vit_tiny_imagenet": 0.000_83}.items():
        asked = minutes(ask("augment_images", study, {"model": name, "alike": "yes"}))
        assert 60 * asked >= LEAST * 1e6 * seconds, name


def test_training_has_time_by_the_images_that_there_are() -> None:
    counts = (20_000, 10_000)
    asked = [minutes(job(MINI, "train_model", count, model="vit")) for count in counts]
    assert asked[0] == pytest.approx(2 * asked[1], abs=1)
    # 16 epochs of 20,000 images took 730 seconds.
    assert 60 * asked[0] >= LEAST * 730


# Megabytes that scripts took at their peak: batches of 64 images, and 32 of landscapes in float32.
@pytest.mark.parametrize(
    ("study", "model", "rule", "measure", "measured"),
    [
        (PAPER, "vit_ti", "predict", "", 700),
        (MINI, "vit", "predict", "", 460),
        (PAPER, "resnet_50", "measure", "lesion", 1211),
        (PAPER, "swin_ti", "measure", "lesion", 1352),
        (MINI, "vit", "measure", "lesion", 493),
        (PAPER, "swin_ti", "measure", "landscape", 1251),
        (MINI, "vit", "measure", "landscape", 478),
        # 16 images; products with the Hessian.
        (MINI, "vit", "measure", "hessian", 691),
        # 100 images, and the process that augments them.
        (MINI, "vit", "train_model", "", 1111),
    ],
)
def test_batches_have_the_memory_that_they_took(
    study: Study, model: str, rule: str, measure: str, measured: int
) -> None:
    sixty_four = replace(study, analysis=replace(study.analysis, batch_size=64))
    names = {"model": model, "split": "test", "part": "0", "measure": measure, "snapshot": "end"}
    asked = costs_of_job.megabytes(*job(sixty_four, rule, 10_000, **names)) - costs_of_job.ON_A_NODE
    assert measured * 1.08 <= asked <= MOST * measured


def test_a_training_has_time_and_memory_by_its_network() -> None:
    requests = [read("train_model", {"model": model}, {}) for model in ("vit", "mixer")]
    assert requests[0].network == costs_of_job.count_network(MINI, "vit")
    train = find_job("train_model")
    most, least = (costs_of_job.minutes(train, replace(each, images=20_000)) for each in requests)
    assert most > least
    # What has no cut points can be trained all the same.
    blind = replace(MINI.models["vit"], points=[{"module": "nowhere"}])
    study = replace(MINI, models={"vit": blind})
    assert read("train_model", {"model": "vit"}, {}, study).network is None


def test_images_that_are_not_stored_are_counted_by_their_numbers(tmp_path: Path) -> None:
    """Two of eight bytes for each; images of a split that is tested on are stored."""
    study = load_study(BUNDLED_STUDIES / "imagenet.yaml")
    files = {"train": file_of(tmp_path / "train", 16 * 5000 + 9)}
    assert read("train_model", {"model": "vit_ti"}, files, study).images == 5000
    building = read("build_split", {"dataset": "imagenet", "split": "train"}, {}, study)
    assert costs_of_job.minutes(find_job("build_split"), building) == costs_of_job.LEAST_MINUTES + 1


def test_vectors_of_the_hessian_are_those_that_lanczos_keeps() -> None:
    assert LEAST_VECTORS == LARGEST_BASIS


def test_profiles_agree_where_no_site_differs() -> None:
    files = (ROOT / "profiles" / name / "profile.yaml" for name in ("default", "slurm"))
    ours, theirs = map(load_yaml, files)
    assert theirs | ours == theirs | {"cores": ours["cores"]}


@pytest.fixture(scope="module")
def frozen() -> Study:
    return load_study(FROZEN)


def with_analysis(study: Study, **changes: Any) -> Study:
    return replace(study, analysis=replace(study.analysis, **changes))


def bytes_by_hand(study: Study) -> int:
    # Of latents: variance of both networks, amplitudes of the ViT at three moments, and CKA.
    values = {model: costs_of_job.count_network(study, model).values for model in study.models}
    shown = [*study.models_of("feature_variance"), *study.models_of("fourier")]
    return sum(
        4 * values[model] * study.images(model)
        for model in {*shown, *study.models_of("cka_between")}
    )


@pytest.fixture
def nothing_counted_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "before.json").write_text("{}")
    monkeypatch.setattr(costs_of_job, "COUNTED_BEFORE", tmp_path / "before.json")


@pytest.mark.usefixtures("nothing_counted_before")
def test_latents_are_counted(frozen: Study, tmp_path: Path) -> None:
    found = sum(costs_of_job.latents_bytes(frozen, tmp_path / "counted.json"))
    assert found == bytes_by_hand(frozen) > 0
    half = with_analysis(frozen, latents_dtype="bfloat16")
    assert 2 * sum(costs_of_job.latents_bytes(half, tmp_path / "counted.json")) == found


@pytest.mark.usefixtures("nothing_counted_before")
def test_a_bound_decides(frozen: Study, tmp_path: Path) -> None:
    counted = tmp_path / "counted.json"
    whole = bytes_by_hand(frozen) / 1e9
    assert costs_of_job.keeps_latents(frozen, whole, counted)
    assert not costs_of_job.keeps_latents(frozen, 0.999 * whole, counted)
    for keep in (True, False):
        assert (
            costs_of_job.keeps_latents(with_analysis(frozen, keep_latents=keep), whole, counted)
            is keep
        )
    assert costs_of_job.say_what_latents_cost(frozen, whole, counted).startswith(
        "Latents are kept: 0.404 GB"
    )
    assert "are measured in memory, not written." in costs_of_job.say_what_latents_cost(
        frozen, 0, counted
    )


@pytest.mark.usefixtures("nothing_counted_before")
def test_a_network_is_counted_once(
    frozen: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = tmp_path / "counted.json"
    first = [*costs_of_job.latents_bytes(frozen, counted)]
    monkeypatch.setattr(costs_of_job, "count_network", None)
    assert [*costs_of_job.latents_bytes(frozen, counted)] == first
    counted.write_text("damaged")
    with pytest.raises(TypeError):
        [*costs_of_job.latents_bytes(frozen, counted)]


def test_a_network_that_cannot_be_counted_keeps_nothing(frozen: Study, tmp_path: Path) -> None:
    name = frozen.models_of("feature_variance")[0]
    broken = replace(frozen.models[name], points=[{"module": "nowhere", "kind": "conv"}])
    study = replace(frozen, models=frozen.models | {name: broken})
    assert not costs_of_job.keeps_latents(study, 1e9, tmp_path / "counted.json")


def test_planning_the_default_study_builds_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    counted = sum(costs_of_job.latents_bytes(study, tmp_path / "counted.json"))
    assert counted > 1e9
    monkeypatch.setattr(costs_of_job, "count_network", None)
    assert sum(costs_of_job.latents_bytes(study, tmp_path / "counted.json")) == counted
    assert not (tmp_path / "counted.json").exists()


@pytest.mark.nightly
@pytest.mark.usefixtures("nothing_counted_before")
def test_what_was_counted_before_is_what_is_counted() -> None:
    known = json.loads(BEFORE.read_text(encoding="utf-8"))
    assert counted_latents() == known, "run python -m tests.counted_latents"
