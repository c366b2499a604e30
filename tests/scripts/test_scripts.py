"""What scripts import before their work."""

import subprocess
import sys

from tests.helpers.rules import ROOT, rules
from vitscope.measures import registry


def scripts_of(*environments: str) -> list[str]:
    """Return the scripts of the rules that run in some environments."""
    used = {rule.name_in("script"): rule.name_in("conda") for rule in rules().values()}
    return sorted(script for script, conda in used.items() if script and conda in environments)


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


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
    assert {"tabulate", "draw_figure", "merge", "measure_latents"} <= set(names)
    done = run(IMPORTS_OF.format(module="torch", names=names))
    assert done.returncode == 0, done.stderr


def test_rooms_of_rules_without_torch_import_none() -> None:
    declared = [registry.declared(name) for name in registry.names()]
    computing = [m.name for m in declared if m.needs in ("latents", "predictions")]
    merging = [*filter(None, map(registry.merging_module, registry.names()))]
    modules = [registry.module(name, "compute") for name in computing]
    modules += merging
    assert len(modules) > 8
    code = f"import sys, {', '.join(modules)}\nsys.exit('torch' in sys.modules)"
    assert run(code).returncode == 0


def test_a_script_that_imports_torch_is_noticed() -> None:
    done = run(IMPORTS_OF.format(module="torch", names=["list_blocks"]))
    assert done.stderr == "list_blocks imports torch\n"


def test_jobs_check_no_studies() -> None:
    names = scripts_of("base", "figures", "torch")
    done = run(IMPORTS_OF.format(module="msgspec", names=names))
    assert done.returncode == 0, done.stderr
