"""What scripts import before their work, and how their time is told."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts._times import STATUS, WANTED
from tests.helpers.rules import ROOT, rules


def scripts_of(*environments: str) -> list[str]:
    """Return the scripts of the rules that run in some environments."""
    used = {rule.name_in("script"): rule.name_in("conda") for rule in rules().values()}
    return sorted(script for script, conda in used.items() if script and conda in environments)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    env = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


IMPORTS_OF = """
import sys
from pathlib import Path
for name in {names}:
    source = Path("scripts", name + ".py").read_text(encoding="utf-8")
    exec(compile(source.partition("with job(")[0], name, "exec"), {{}})
    if "{module}" in sys.modules:
        sys.exit(f"{{name}} imports {module}")
"""


def test_scripts_of_rules_without_torch_import_none() -> None:
    names = scripts_of("base", "figures")
    assert {"tabulate", "draw_figure", "merge_variance", "measure_cka"} <= set(names)
    done = run(IMPORTS_OF.format(module="torch", names=names))
    assert done.returncode == 0, done.stderr


def test_a_script_that_imports_torch_is_noticed() -> None:
    done = run(IMPORTS_OF.format(module="torch", names=["list_blocks"]))
    assert done.stderr == "list_blocks imports torch\n"


def test_jobs_check_no_studies() -> None:
    names = scripts_of("base", "figures", "torch")
    done = run(IMPORTS_OF.format(module="jsonschema", names=names))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", scripts_of("base", "figures", "torch"))
def test_scripts_import_the_frame_of_jobs_first(name: str) -> None:
    source = (ROOT / "scripts" / f"{name}.py").read_text(encoding="utf-8")
    imports = re.findall(r"^(?:import|from) (\S+)", source, re.MULTILINE)
    standard = [module for module in imports if module.split(".")[0] in sys.stdlib_module_names]
    assert imports[len(standard)] == "scripts._job"


TIMED = """
from time import sleep
from scripts._times import timed
with timed("logs/rule.log"):
    import {module}
    sleep(0.2)
"""


def test_the_work_of_a_script_is_told_without_its_imports(tmp_path: Path) -> None:
    times = tmp_path / "times.jsonl"
    # An import of pandas takes some tenths of a second.
    for module in ("sys", "pandas"):
        assert run(TIMED.format(module=module), **{WANTED: str(times)}).returncode == 0
    lines = [json.loads(line) for line in times.read_text(encoding="utf-8").splitlines()]
    assert [line[0] for line in lines] == ["logs/rule.log"] * 2
    for _, work, *_ in lines:
        assert work == pytest.approx(0.2, abs=0.1)


@pytest.mark.skipif(not STATUS.exists(), reason="the system does not tell the memory of a process")
def test_the_most_memory_of_a_script_is_told(tmp_path: Path) -> None:
    code = "from scripts._times import timed\nwith timed('log'):\n    b'x' * (200 * 2**20)\n"
    times = tmp_path / "times.jsonl"
    run(code, **{WANTED: str(times)})
    _, _, processor, memory = json.loads(times.read_text(encoding="utf-8"))
    assert 0 < processor < 60
    assert 200 < memory < 300


def test_nothing_is_told_that_nobody_asked_for(tmp_path: Path) -> None:
    code = f"import builtins\nbefore = builtins.__import__\n{TIMED.format(module='sys')}"
    code += "    assert builtins.__import__ is before\n"
    assert run(code).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_imports_are_told_as_they_were_before_the_end(tmp_path: Path) -> None:
    code = TIMED.format(module="sys") + "import builtins\nprint(builtins.__import__)\n"
    done = run(code, **{WANTED: str(tmp_path / "times")})
    assert done.stdout.startswith("<built-in function __import__>")
