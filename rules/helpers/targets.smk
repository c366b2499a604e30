"""What a user may ask for, by name or by path, and which targets are refused."""

from snakemake.cli import get_argument_parser

FOLDERS = {name: name for name in ("figures", "results")} | config.get("pathvars", {})


def figures_of(study):
    """The names of all figures of a study, and of those of its build-ups."""
    return sorted([*STUDIES[study].figures, *STUDIES[study].buildups])


def tables_and_record(study):
    """What belongs to a study beside its figures: tables, claims, and the record of the run."""
    return [
        *collect(rules.tabulate.output.table, study=study, table=tables_in(study)),
        rules.count_claims.output.claims.format(study=study),
        rules.draw_claims.output.pdf.format(study=study),
        rules.record_run.output.record.format(study=study),
    ]


def asked_for():
    """The targets of the command line.

    Snakemake looks at them when all rules are read and says of a wrong one that its rule is
    missing; nothing of it can be called in between. Jobs of it have other targets than these.
    """
    if Path(sys.argv[0]).parent.name != "snakemake" and Path(sys.argv[0]).name != "snakemake":
        return []
    return get_argument_parser().parse_known_args(sys.argv[1:])[0].targets


def refuse_wrong_targets():
    """Stop, before anything is planned, at a target that nothing makes or a study does not have."""
    names = tuple(rule.name for rule in workflow.rules)
    places = targets.Places(FOLDERS["figures"], FOLDERS["results"], names)
    for target in filter(lambda target: target not in names, asked_for()):
        path = target if os.path.isabs(target) else os.path.relpath(target)
        made = [file.match(path) for rule in workflow.rules for file in rule.products()]
        found = [match.groupdict() for match in made if match]
        if not found:
            clear(targets.refuse_unknown, target, LOADED, places)
        for wildcards in found:
            study = STUDIES[wildcards.get("study", DEFAULT)]
            clear(targets.check_names, target, study, wildcards)
