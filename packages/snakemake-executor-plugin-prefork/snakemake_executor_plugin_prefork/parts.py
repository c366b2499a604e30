"""Every part of Snakemake that this plugin uses and that Snakemake does not promise to keep.

No other module of the plugin imports from `snakemake`. `tests/test_parts.py` fails when one moves.

1. `executors.local.Executor`, the base class, and its method `cached_or_run`.
2. `script.PythonScript.execute_script`, replaced by a function that asks the executor first, and
   what it reads of a script: `resources`, `threads`, `bench_record`, environments.
3. `benchmark.benchmarked`, as `shell` uses it.
4. `shell`: what it puts around a command, and its default of these.
5. `common.get_snakemake_searchpaths`, what the head of a script appends to `sys.path`.
"""

import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version

from snakemake.benchmark import benchmarked
from snakemake.common import get_snakemake_searchpaths
from snakemake.executors import local
from snakemake.logging import logger
from snakemake.script import PythonScript
from snakemake.shell import shell

__all__ = ["PythonScript", "benchmarked", "get_snakemake_searchpaths", "local", "logger"]

OLDEST, NEWEST = (9, 20), (10,)
# As `shell` sets them. Libraries read them once, when they are imported.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
TMP_VARIABLES = ("TMPDIR", "TMP", "TEMPDIR", "TEMP")
# What bash reads before a command, which may change the environment.
OF_BASH = ("BASH_ENV", "ENV", "BASHOPTS", "SHELLOPTS")

# It returns whether it has run the script, or how that failed.
Run = Callable[[PythonScript, str], bool | Exception]
_run: ContextVar[Run | None] = ContextVar("run", default=None)


def why_it_does_not_fit() -> str | None:
    """Say why this version of Snakemake cannot be used, if it cannot."""
    found = version("snakemake")
    if not OLDEST <= tuple(map(int, found.split(".")[:2])) < NEWEST:
        return f"it knows Snakemake 9.20 to 9, and not {found}"
    expected = {
        local.Executor.cached_or_run: ["self", "job", "run_func", "args"],
        PythonScript.execute_script: ["self", "fname", "edit"],
        benchmarked: ["pid", "benchmark_record", "interval"],
    }
    for function, names in expected.items():
        if list(inspect.signature(function).parameters) != names:
            return f"Snakemake {found} has another {function.__qualname__}"
    return None


@cache
def _let_scripts_ask() -> None:
    """Replace the method once: where no executor of this plugin runs a job, nothing changes."""
    original = PythonScript.execute_script

    def execute_script(self: PythonScript, fname: str, edit: bool = False) -> None:
        run = _run.get()
        done = run is not None and not edit and run(self, fname)
        if isinstance(done, Exception):
            raise done
        if not done:
            original(self, fname, edit)

    # Snakemake prints the lines of an error that are not its own.
    file = original.__code__.co_filename
    execute_script.__code__ = execute_script.__code__.replace(co_filename=file)
    PythonScript.execute_script = execute_script


@contextmanager
def scripts_run_by(run: Run) -> Iterator[None]:
    """Let a function run the scripts of the block; where it returns False, Snakemake does."""
    _let_scripts_ask()
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


def is_plain(script: PythonScript) -> bool:
    """Tell whether Snakemake would run a script by its own Python, with nothing around it."""
    return (
        script.container_img is None
        and script.conda_env is None
        and script.env_modules is None
        and not script.resources.get("shell_exec")
        and shell._process_prefix is None
        and not shell._process_suffix
        and os.path.basename(shell.get_executable() or "") == "bash"
        and not any(name in os.environ for name in OF_BASH)
    )


def command_of(fname: str) -> str:
    """Return the command that Snakemake would run and names where it fails."""
    return f"set -euo pipefail;  {sys.executable} {shlex.quote(fname)}"


def environment_of(script: PythonScript, folder: str) -> dict[str, str]:
    """Return the variables that a script has: what `shell` sets, and the bash that it starts."""
    found = dict(os.environ) | dict.fromkeys(THREAD_VARIABLES, str(script.threads))
    if tmp := script.resources.get("tmpdir"):
        found |= dict.fromkeys(TMP_VARIABLES, tmp)
    # As bash leaves them to the last command that it starts. One that no person types at has no
    # prompts, which an activated environment sets.
    for prompt in ("PS1", "PS2"):
        found.pop(prompt, None)
    return {"SHLVL": "0"} | found | {"PWD": folder, "_": sys.executable}
