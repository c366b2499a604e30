"""No job runs a function of vitscope that its digest does not cover: seen in a run of all kinds."""

import json
from pathlib import Path

import pytest

from tests.helpers.coverage import covered
from tests.runs.copies import EVERYTHING, copy_workflow

# Python imports it at its start. It notes each function of the package that is called by the work
# of a job, or in a thread of its own; what importing a module calls makes what the module defines.
WATCHING = """
import atexit, json, os, sys, threading
from pathlib import Path

PACKAGE = str(Path(__file__).parent / "vitscope") + "/"
seen, called = set(), set()


def watch(frame, event, argument):
    code = frame.f_code
    if event != "call" or code in seen or not code.co_filename.startswith(PACKAGE):
        return
    above, of_job = frame.f_back, threading.current_thread() is not threading.main_thread()
    while above:
        file, name = above.f_code.co_filename, above.f_code.co_name
        if name == "<module>" and file.startswith(PACKAGE):
            return
        of_job |= name == "_run_for_rule" and file.endswith("/scripts/_job.py")
        above = above.f_back
    if of_job:
        seen.add(code)
        called.add((code.co_filename[len(PACKAGE):], code.co_qualname.partition(".")[0]))


def write():
    snakemake = getattr(sys.modules["__main__"], "snakemake", None)
    if snakemake is not None and "job" in snakemake.params.keys():
        named = snakemake.params["values"].get("modules", [])
        text = json.dumps([snakemake.params.job, sorted(named), sorted(called)])
        Path(os.environ["CALLED"], f"{os.getpid()}.json").write_text(text)


if "CALLED" in os.environ:
    atexit.register(write)
    sys.setprofile(watch)
    threading.setprofile(watch)
"""

# What hands a job its work, and says how far it is: it changes no result.
AROUND = ("vitscope.jobs.job", "vitscope.progress")


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> list[list]:
    """What each job of a run of every kind of figure called: the job, its modules, functions."""
    folder = tmp_path_factory.mktemp("executed")
    workflow = copy_workflow(folder / "copy", studies)
    (workflow.root / "sitecustomize.py").write_text(WATCHING, encoding="utf-8")
    (folder / "called").mkdir()
    process = workflow.start(
        "--cores", "2", default=EVERYTHING, extra={"CALLED": str(folder / "called")}
    )
    assert process.wait(3600) == 0
    return [json.loads(file.read_bytes()) for file in (folder / "called").iterdir()]


@pytest.mark.nightly
def test_every_function_that_a_job_calls_is_one_that_its_digest_covers(called):
    assert len({job for job, *_ in called}) > 13
    missing = set()
    for job, modules, functions in called:
        known = covered(job, *modules)
        for file, name in functions:
            module = ".".join(["vitscope", *Path(file).with_suffix("").parts])
            module = module.removesuffix(".__init__")
            # A comprehension or a function without a name stands in what has one.
            named = not name.startswith("<") and module not in AROUND
            if named and (module, name) not in known:
                missing.add((job, module, name))
    assert missing == set()
    assert sum(len(functions) for *_, functions in called) > 10_000
