"""Commands and code in processes of their own, which must succeed."""

import subprocess
import sys
from typing import Any


def output_of(*command: object, **options: Any) -> str:
    """Run a command; return what it printed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(code: str, *arguments: object, **options: Any) -> str:
    """Run code in a fresh interpreter; return what it printed."""
    return output_of(sys.executable, "-c", code, *arguments, **options)
