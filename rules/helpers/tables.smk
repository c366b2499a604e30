"""What the jobs of tables.smk are given, and where their inputs lie."""


def subjects_in_table(wildcards):
    """The table of each model, or pair, that is joined; every rule that makes one writes it here."""
    study = study_of(wildcards)
    subjects = study.subjects_of(wildcards.table)
    path = "<results>/{study}/{table}/{model}.parquet"
    return collect(path, study=study.name, table=wildcards.table, model=subjects)
