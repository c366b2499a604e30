"""What every script does around its own lines, in processes of their own as Snakemake runs them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FRAME = """
import sys
from types import SimpleNamespace
import {imports}
from scripts._job import job
from vitscope.errors import VitscopeError
snakemake = SimpleNamespace(log=[sys.argv[1]], threads=3)
with job(snakemake):
{body}
"""


def run(log: Path, body: str, imports: str = "os") -> subprocess.CompletedProcess[str]:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    code = FRAME.format(imports=imports, body=indented)
    command = [sys.executable, "-c", code, str(log)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_what_is_printed_goes_to_the_terminal_and_the_log(tmp_path: Path) -> None:
    log = tmp_path / "new" / "log.txt"
    done = run(log, "print('höllo')\nprint('more', end='', flush=True)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "höllo\nmore", "")
    assert log.read_text(encoding="utf-8") == "höllo\nmore"


def test_the_log_is_of_the_last_run(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    run(log, "print('a long first line')")
    run(log, "print('second')")
    assert log.read_text(encoding="utf-8") == "second\n"


def test_an_expected_failure_is_one_sentence(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    done = run(log, "print('begins')\nraise VitscopeError('It is wrong: put it right.')")
    sentence = "vitscope: It is wrong: put it right.\n"
    assert done.returncode == 1
    assert done.stderr == sentence
    assert log.read_text(encoding="utf-8") == f"begins\n{sentence}"


def test_too_little_memory_is_one_sentence(tmp_path: Path) -> None:
    for body, imports in (
        ("raise MemoryError", "os"),
        ("raise torch.OutOfMemoryError('x')", "torch"),
    ):
        done = run(tmp_path / "log.txt", body, imports)
        sentence = "vitscope: not enough memory: lower analysis.batch_size in the study.\n"
        assert (done.returncode, done.stderr) == (1, sentence)
        assert (tmp_path / "log.txt").read_text(encoding="utf-8") == sentence


def test_an_unexpected_failure_is_told_in_full(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    done = run(log, "raise ZeroDivisionError('why')")
    assert done.returncode == 1
    for text in (done.stderr, log.read_text(encoding="utf-8")):
        assert text.startswith("Traceback")
        assert text.endswith("ZeroDivisionError: why\n")


def test_torch_uses_the_threads_of_the_job(tmp_path: Path) -> None:
    assert run(tmp_path / "log", "print(torch.get_num_threads())", "torch").stdout == "3\n"


def test_a_script_without_torch_does_not_import_it(tmp_path: Path) -> None:
    assert run(tmp_path / "log", "print('torch' in sys.modules)").stdout == "False\n"


def test_libraries_may_ask_what_they_print_to(tmp_path: Path) -> None:
    done = run(tmp_path / "log", "print(sys.stdout.isatty(), sys.stdout.writable())")
    assert (done.stdout, done.stderr) == ("False True\n", "")
