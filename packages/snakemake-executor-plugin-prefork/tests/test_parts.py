"""What Snakemake does not promise to keep is as `parts` expects it."""

import inspect
import os
import sys
from types import SimpleNamespace

import pytest
from snakemake.script import PythonScript
from snakemake.shell import shell

from snakemake_executor_plugin_prefork import parts


def test_this_snakemake_fits() -> None:
    assert parts.why_it_does_not_fit() is None


@pytest.mark.parametrize("found", ["9.19.3", "10.0.0"])
def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(parts, "version", lambda _: found)
    assert parts.why_it_does_not_fit() == f"it knows Snakemake 9.20 to 9, and not {found}"


def test_a_method_that_changed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PythonScript, "execute_script", lambda self, path: None)
    assert "has another" in parts.why_it_does_not_fit()


def test_a_script_has_what_is_read_of_it() -> None:
    names = inspect.signature(PythonScript.__init__).parameters
    assert {"resources", "threads", "bench_record", "conda_env", "container_img"} <= set(names)
    assert {"env_modules"} <= set(names)


def test_the_shell_sets_the_variables_that_are_set_here(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As an activated environment does.
    monkeypatch.setenv("PS1", "(.venv) ")
    monkeypatch.setenv("PS2", "> ")
    resources = {"tmpdir": "/elsewhere"}
    shown = "import os; print(*sorted(f'{k}={v}' for k, v in os.environ.items()), sep='\\n')"
    command = f'{sys.executable} -c "{shown}"'
    text = shell("{command}", read=True, threads=3, resources=resources, command=command)
    script = SimpleNamespace(threads=3, resources=resources)
    here = parts.environment_of(script, os.getcwd())
    assert text.splitlines() == sorted(f"{key}={value}" for key, value in here.items())
