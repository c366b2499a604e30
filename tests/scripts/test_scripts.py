from tests.helpers.processes import python
from tests.helpers.rules import ROOT, rules
from vitscope.jobs.job import names as job_names
from vitscope.measures import registry


def jobs_of(*environments: str) -> list[str]:
    """Return the kinds of work of the rules that run in some environments."""
    found = (rule.job for rule in rules().values() if rule.name_in("conda") in environments)
    return sorted({job for job in found if job})


# What a job imports before it works: with its module, and at the beginning of `run`.
IMPORTS_OF = """
import ast, inspect, sys
from vitscope.jobs.job import find_job
import scripts._job
for name in {names}:
    tree = ast.parse(inspect.getsource(find_job(name).run))
    lines = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(body=lines, type_ignores=[]), name, "exec"), {{}})
    if "torch" in sys.modules:
        sys.exit(f"{{name}} imports torch")
"""


def test_jobs_of_rules_without_torch_import_none() -> None:
    names = jobs_of("base", "figures")
    assert {"tabulate", "draw_figure", "merge", "measure"} <= set(names)
    python(IMPORTS_OF.format(names=names), cwd=ROOT)


def test_every_rule_does_a_kind_of_work_and_each_is_done_by_one() -> None:
    done = {name: rule.job for name, rule in rules().items() if rule.part("script")}
    assert all(done.values()), [name for name, job in done.items() if not job]
    assert {*done.values()} == {*job_names()}


def test_rooms_of_rules_without_torch_import_none() -> None:
    declared = [registry.declared(name) for name in registry.names()]
    computing = [m.name for m in declared if m.needs in ("latents", "predictions")]
    merging = filter(None, map(registry.merging, registry.names()))
    functions = [*map(registry.measuring, computing), *merging]
    modules = {each.partition(":")[0] for each in functions}
    assert len(modules) > 8
    python(f"import sys, {', '.join(modules)}\nsys.exit('torch' in sys.modules)")
