"""The executor `prefork` does what `local` does: both run the same jobs, and are compared."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from conftest import Workflow, nothing_is_left_of, words

from snakemake_executor_plugin_prefork.client import Zygote

nightly = pytest.mark.nightly

SEEN = """
import hashlib, locale, os, random, resource, signal, socket, sys, tempfile, threading, warnings
import json, gc, time
status = open("/proc/self/status").read()
mask = [line for line in status.splitlines() if line.startswith(("SigB", "SigI", "SigC", "Umask", "Threads"))]
seen = {
    "variables": dict(os.environ), "folder": os.getcwd(), "mask": mask,
    "argv": [os.path.basename(each).partition(".")[2] for each in sys.argv],
    "path": [each for each in sys.path[1:]], "first": os.path.basename(sys.path[0]),
    "name": __name__, "file": __file__, "doc": __doc__, "main": sys.modules["__main__"].__file__,
    "same": vars(sys.modules["__main__"]) is globals(), "spec": __spec__, "package": __package__,
    "globals": sorted(globals()), "annotations": __annotations__, "flags": list(sys.flags),
    "files": sorted(os.listdir("/proc/self/fd"))[:-1], "hook": sys.excepthook is sys.__excepthook__,
    "filters": [str(each) for each in warnings.filters], "hash": hash("a"),
    "temporary": tempfile.gettempdir(), "locale": locale.setlocale(locale.LC_ALL),
    "interrupt": str(signal.getsignal(signal.SIGINT)), "threads": threading.active_count(),
    "encodings": [sys.stdout.encoding, sys.getfilesystemencoding()], "zone": time.tzname,
    "limits": [resource.getrlimit(each) for each in range(16)], "gc": gc.get_threshold(),
    "enabled": gc.isenabled(), "nice": os.nice(0), "group": os.getpgrp() == os.getpgid(os.getppid()),
    "given": [snakemake.threads, snakemake.wildcards.job, snakemake.resources.tmpdir],
    "standard": [os.readlink("/proc/self/fd/0")],
}
del seen["variables"]["BENCH"]
drawn = [random.random(), str(tempfile._get_candidate_names().rng.random())]
with open(snakemake.output[0], "w") as file:
    json.dump(seen, file, indent=1)
with open(snakemake.log[0], "w") as file:
    command = open(f"/proc/{os.getppid()}/cmdline").read()
    json.dump({"forked": "zygote.py" in command, "drawn": drawn}, file)
"""


def seen_in(text: bytes) -> dict[str, object]:
    """Return what a script saw, without names that every run draws anew."""
    return json.loads(re.sub(r"/tmp\w{8}\b", "", text.decode()))


@pytest.mark.parametrize(
    "options",
    [
        "resources: tmpdir='elsewhere'",
        *(pytest.param(each, marks=nightly) for each in ("threads: 2", "shadow: 'minimal'")),
    ],
)
def test_a_script_sees_what_it_would_see_alone(workflow: Workflow, options: str) -> None:
    workflow.write(SEEN, options)
    (workflow.folder / "elsewhere").mkdir()
    variables = {"BENCH": "1", "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    found = []
    for executor in ("local", "prefork"):
        code, output = workflow.run(executor, env=variables, umask=0o027)
        assert code == 0, output
        found.append(workflow.made("out", "logs"))
    alone, forked = ({k: v for k, v in each.items() if k.startswith("out")} for each in found)
    for name in alone:
        before, now = seen_in(alone[name]), seen_in(forked[name])
        # A new Python has what `import snakemake` adds at the end, and not before.
        before["path"].sort(), now["path"].sort()
        for key, value in before.items():
            assert (key, now[key]) == (key, value)
    logs = [json.loads(text) for name, text in found[1].items() if name.startswith("logs")]
    assert {each["forked"] for each in logs} == {"shadow" not in options}
    assert len({number for each in logs for number in each["drawn"]}) == 2 * len(logs)


ENDS = """
import os, signal, sys, threading, time, atexit, tempfile
kept = open(snakemake.log[0], "w")
kept.write("written")
class Last:
    def __del__(self): os.close(os.open(f"freed-{job}", os.O_CREAT))
last = Last()
atexit.register(kept.write, " at the end")
temporary = tempfile.NamedTemporaryFile(dir=".", prefix=f"left-{snakemake.wildcards.job}-")
job = snakemake.wildcards.job
out = open(snakemake.output[0], "w")
def later():
    time.sleep(0.3)
    out.write("by a thread")
if job == "thread": threading.Thread(target=later).start()
if job == "daemon": threading.Thread(target=time.sleep, args=[600], daemon=True).start()
if job == "exit0": sys.exit(0)
if job == "exit3": sys.exit(3)
if job == "words": sys.exit("some words")
if job == "_exit": os._exit(5)
if job == "raise": int("x")
if job == "syntax": exec("1 +")
if job == "killed": os.kill(os.getpid(), signal.SIGKILL)
if job == "term": os.kill(os.getpid(), signal.SIGTERM)
if job == "interrupt": raise KeyboardInterrupt
if job == "hook": sys.excepthook = lambda *_: out.write("hook")
if job == "hook": int("x")
if job == "closed": sys.stdout.close()
if job == "tee": sys.stdout = open("tee.txt", "w"); print("told")
if job == "cycle": loop = [Last()]; loop.append(loop); del loop
if job == "fork":
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
out.write(job)
"""
FINE = "thread daemon exit0 closed tee cycle fork"
FAILING = "exit3 words _exit raise syntax killed term interrupt hook"


def test_jobs_end_and_fail_as_they_would_alone(workflow: Workflow) -> None:
    workflow.write(ENDS)
    found = []
    for executor in ("local", "prefork"):
        jobs = f"jobs={FINE} {FAILING}"
        # One after the other, so that no line is torn by another job's.
        code, output = workflow.run(executor, "--cores", "1", "--keep-going", "--config", jobs)
        assert code == 1
        (workflow.folder / "tee.txt").rename(workflow.folder / f"{executor}.txt")
        files = [*workflow.folder.glob("left*"), *workflow.folder.glob("freed*")]
        left = ["-".join(file.name.split("-")[:2]) for file in files]
        for file in files:
            file.unlink()
        found.append((workflow.made("out", "logs"), words(output), left))
    (alone, said_alone, left_alone), (forked, said, left) = found
    # What has been freed is more here, after an error, and no temporary file less is removed.
    assert {*left} >= {*left_alone}
    assert not [name for name in {*left} - {*left_alone} if name.startswith("left")]
    assert {name for name in alone if name.startswith("out")} == {f"out/{j}" for j in FINE.split()}
    assert forked == alone
    assert said == said_alone
    assert (workflow.folder / "prefork.txt").read_text() == "told\n"


def test_what_was_preloaded_is_not_taken_apart(tmp_path: Path) -> None:
    made = """
import weakref
from pathlib import Path
class Made: pass
object_of_{name} = Made()
weakref.finalize(object_of_{name}, Path("{name}.txt").touch)
"""
    (tmp_path / "preloaded.py").write_text(made.format(name="preloaded"))
    script = tmp_path / "script.py"
    script.write_text("import preloaded\n" + made.format(name="script"))
    zygote = Zygote(["preloaded"], [str(tmp_path)], dict(os.environ))
    child = zygote.fork()
    request = {"script": str(script), "environment": dict(os.environ), "folder": str(tmp_path)}
    code, _ = child.run(request)
    zygote.close()
    assert code == 0
    assert [file.name for file in tmp_path.glob("*.txt")] == ["script.txt"]


@nightly
def test_benchmarks_of_short_jobs_are_what_the_kernel_counts(workflow: Workflow) -> None:
    script = """
import time
held = bytearray(300_000_000)
while time.process_time() < 0.3: pass
open(snakemake.output[0], "w").close()
"""
    workflow.write(script, "benchmark: 'bench/{job}.tsv'")
    code, output = workflow.run("prefork")
    assert code == 0, output
    for job in "abc":
        head, line = (workflow.folder / f"bench/{job}.tsv").read_text().splitlines()
        row = dict(zip(head.split("\t"), line.split("\t"), strict=True))
        assert 0.3 <= float(row["cpu_time"]) < 3
        assert 300_000_000 / 2**20 <= float(row["max_rss"]) < 1000
        assert float(row["s"]) >= 0.3
        load = 100 * float(row["cpu_time"]) / float(row["s"])
        assert float(row["mean_load"]) == pytest.approx(load, rel=0.05)


WAITS = """
import os, time
with open(snakemake.log[0], "w") as file: file.write(str(os.getppid()))
while not os.path.exists("go"): time.sleep(0.05)
with open(snakemake.output[0], "w") as file: file.write("made")
"""


def first_log(workflow: Workflow) -> Path:
    for _ in range(600):
        for log in workflow.folder.glob("logs/*"):
            if log.read_text():
                return log
        time.sleep(0.1)
    raise AssertionError("no job started")


def test_the_process_to_fork_from_is_killed(workflow: Workflow) -> None:
    """Jobs that it had forked end at once and are tried again; the rest runs as by `local`."""
    workflow.write(WAITS)
    run = workflow.start("prefork", "--retries", "1")
    zygote = int(first_log(workflow).read_text())
    os.kill(zygote, signal.SIGKILL)
    (workflow.folder / "go").touch()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output
    assert "the process that this job was forked from was killed" in output
    assert output.count("jobs run as by the local executor") == 1
    made = workflow.made()
    assert [made[f"out/{job}"] for job in "abc"] == [b"made"] * 3


@nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_the_whole_run(workflow: Workflow, number: signal.Signals) -> None:
    """As the terminal sends it: all ends, nothing is left."""
    workflow.write(WAITS)
    run = workflow.start("prefork", start_new_session=True)
    first_log(workflow)
    os.killpg(run.pid, number)
    run.communicate(timeout=60)
    assert run.returncode != 0
    assert nothing_is_left_of(run.pid)
    assert not workflow.made()


@nightly
def test_snakemake_alone_is_killed_and_its_jobs_go_on(workflow: Workflow) -> None:
    """As by the local executor."""
    workflow.write(WAITS)
    run = workflow.start("prefork", start_new_session=True)
    first_log(workflow)
    run.kill()
    run.wait()
    (workflow.folder / "go").touch()
    assert nothing_is_left_of(run.pid)
    assert b"made" in workflow.made().values()


@nightly
@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import missing", "cannot import heavy (ModuleNotFoundError: No module named 'missing')"),
        ("import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()",
         "heavy starts threads when it is imported"),
        ("import os\nheld = os.open('/dev/null', 0)", "heavy leaves a file open"),
        ("import tempfile\nheld = tempfile.mkdtemp()", "heavy makes temporary files"),
        ("import os\nos.kill(os.getpid(), 9)", "ended while it imported (-9)"),
    ],
)  # fmt: skip
def test_what_cannot_be_preloaded_is_said_once(workflow: Workflow, module: str, why: str) -> None:
    script = "open(snakemake.output[0], 'w').write('made')\n"
    workflow.write(script, heavy=module)
    code, output = workflow.run("prefork", "--prefork-preload", "heavy")
    assert code == 0, output
    assert output.count(why) == 1
    assert output.count("jobs run as by the local executor") == 1
    assert set(workflow.made().values()) == {b"made"}


@nightly
def test_what_is_preloaded_is_there_and_drawn_numbers_are_new(workflow: Workflow) -> None:
    script = """
import os, sys, numpy
assert "heavy" in sys.modules
import heavy
assert heavy.imported_by == os.getppid()
with open(snakemake.output[0], "w") as file: file.write(str(numpy.random.random()))
"""
    heavy = "import os, numpy\nnumpy.random.random()\nimported_by = os.getpid()\n"
    workflow.write(script, "resources: prefork_preload='heavy'", heavy=heavy)
    code, output = workflow.run("prefork")
    assert code == 0, output
    assert len(set(workflow.made().values())) == 3


def test_a_variable_that_the_run_changes_reaches_scripts(workflow: Workflow) -> None:
    """As where an input function imports a library that sets one; all fork from one process."""
    script = """
import os
open(snakemake.output[0], "w").write(f"{os.environ['CHANGED']} {os.getppid()}")
"""
    workflow.write(script, "params: lambda wildcards: os.environ.update(CHANGED=wildcards.job)")
    code, output = workflow.run("prefork", "--cores", "1")
    assert code == 0, output
    found = {name: text.split() for name, text in workflow.made().items()}
    assert {name: letter for name, (letter, _) in found.items()} == {
        f"out/{job}": job.encode() for job in "abc"
    }
    assert len({process for _, process in found.values()}) == 1


@nightly
def test_few_scripts_run_as_by_local(workflow: Workflow) -> None:
    workflow.write("open(snakemake.output[0], 'w').write(open('/proc/self/cmdline').read())\n")
    code, output = workflow.run("prefork", "--config", "jobs=a b")
    assert code == 0, output
    assert not any(b"zygote" in text for text in workflow.made().values())
