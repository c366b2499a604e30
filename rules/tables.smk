"""Tables: one of all models of a study from the tables of each."""


def models_in_table(wildcards):
    """The tables of all models of which a study makes one table; rules that make one write it here."""
    study = study_of(wildcards)
    models = study.models_of(wildcards.table)
    path = "<results>/{study}/{table}/{model}.parquet"
    return collect(path, study=study.name, table=wildcards.table, model=models)


rule tabulate:
    input:
        models=models_in_table,
    output:
        table="<results>/{study}/tables/{table}.parquet",
    log:
        "<logs>/{study}/tables/{table}.log",
    benchmark:
        "<benchmarks>/{study}/tables/{table}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code_of("tabulate"),
        columns=lambda wildcards: params.columns_of(wildcards.table),
    message:
        "Writing the table {wildcards.table} of {wildcards.study}"
    script:
        "../scripts/tabulate.py"
