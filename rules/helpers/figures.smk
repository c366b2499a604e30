"""What the jobs of figures.smk are given, and where their inputs lie."""


def tables_of_figure(wildcards):
    """The tables of the models of a figure, or of its pairs, by their names."""
    study = study_of(wildcards)
    figure = study.figures[wildcards.figure]
    path = "<results>/{study}/{table}/{model}.parquet"
    return {
        table: collect(path, study=study.name, table=table, model=figure.subjects(table))
        for table in registry.kinds()[figure.kind].tables
    }


def published_of_figure(wildcards):
    """The published points that a figure shows, if any."""
    published = study_of(wildcards).figures[wildcards.figure].published
    return [from_here(package_data.PUBLISHED_POINTS / published.file)] if published else []
