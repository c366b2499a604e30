"""Run a module in a process that has imported all but vitscope, which each copy has itself."""

import json
import os
import sys
from functools import cache
from pathlib import Path
from runpy import run_module
from tempfile import NamedTemporaryFile

from snakemake_executor_plugin_prefork.client import Zygote

# What takes longest of what Snakemake and its planning import.
MODULES = ["snakemake.cli", "snakemake.workflow", "pandas", "pyarrow.parquet", "pulp"]
GIVEN = "VITSCOPE_WARM"
# Seconds of processor time of each run: what is forked from is no child that has ended.
spent: list[float] = []


@cache
def zygote(process: int) -> Zygote:
    return Zygote(MODULES, [], dict(os.environ))


def run(
    module: str, arguments: list[str], folder: Path, environment: dict[str, str]
) -> tuple[int, str]:
    """Run `python -m MODULE ARGUMENTS`; return its exit code and all that it printed."""
    with NamedTemporaryFile("r", encoding="utf-8") as printed:
        given = {
            GIVEN: json.dumps({"module": module, "arguments": arguments, "output": printed.name})
        }
        request = {"script": __file__, "environment": environment | given, "folder": str(folder)}
        child = zygote(os.getpid()).fork()
        assert child, "no process can be forked"
        code, used = child.run(request)
        spent.append(used.seconds)
        return code, printed.read()


def plan(folder: Path, root: Path, *arguments: str) -> str:
    """Run `vitscope plan` of a clone in a folder; return what it printed."""
    environment = os.environ | {"PYTHONPATH": str(root)}
    code, printed = run("vitscope", ["plan", *arguments], folder, environment)
    assert code == 0, printed
    return printed


def main() -> None:
    given = json.loads(os.environ.pop(GIVEN))
    output = os.open(given["output"], os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    # As a new Python has them from its environment.
    sys.path[:1] = os.environ["PYTHONPATH"].split(os.pathsep)
    sys.dont_write_bytecode = True
    sys.argv[1:] = given["arguments"]
    run_module(given["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
