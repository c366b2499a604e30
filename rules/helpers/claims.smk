"""What the jobs of claims.smk are given, and where their inputs lie."""


def tables_of_study(wildcards):
    """The tables of all models, by their names."""
    study = study_of(wildcards)
    return {
        table: rules.tabulate.output.table.format(study=study.name, table=table)
        for table in study.tables()
    }


def published_files(wildcards):
    """The published points that the figures of a study show."""
    figures = study_of(wildcards).figures.values()
    names = {figure.published.file for figure in figures if figure.published}
    return [from_here(package_data.PUBLISHED_POINTS / name) for name in sorted(names)]
