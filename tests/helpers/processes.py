import subprocess
import sys
from typing import Any


def output_of(*command: object, **options: Any) -> str:
    """Run a command; return what it printed."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    done = subprocess.run(list(map(str, command)), text=True, check=False, **options)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def python(code: str, *arguments: object, **options: Any) -> str:
    """Run code in a fresh interpreter; return what it printed."""
    return output_of(sys.executable, "-c", code, *arguments, **options)
