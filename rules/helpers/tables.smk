"""What the jobs of tables.smk are given, and where their inputs lie."""


def models_in_table(wildcards):
    """The table of each model that is joined; every rule that makes such a table writes it here."""
    study = study_of(wildcards)
    models = study.models_of(wildcards.table)
    path = "<results>/{study}/{table}/{model}.parquet"
    return collect(path, study=study.name, table=wildcards.table, model=models)
