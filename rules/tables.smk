"""Tables of a study, each joined from the tables of its models."""


rule tabulate:
    """Join the tables of models or pairs to one table of the study."""
    input:
        subjects=subjects_in_table,
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
        **values_and_code_of("tabulate"),
    message:
        "Writing the table {wildcards.table} of {wildcards.study}"
    script:
        "../scripts/tabulate.py"


rule export_table:
    """Write a table as CSV, on demand, including the tables of claims and of build-ups."""
    input:
        table="<results>/{study}/tables/{table}.parquet",
    output:
        csv="<results>/{study}/tables/{table}.csv",
    log:
        "<logs>/{study}/tables/{table}_csv.log",
    wildcard_constraints:
        table=one_of(named_by(targets.exported_tables)),
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **values_and_code_of("export_table"),
    message:
        "Writing the table {wildcards.table} of {wildcards.study} as CSV"
    script:
        "../scripts/export_table.py"


use rule export_table as export_table_as_latex with:
    """Write a table as LaTeX, on demand; `count_claims` writes that of claims."""
    output:
        latex="<results>/{study}/tables/{table}.tex",
    log:
        "<logs>/{study}/tables/{table}_tex.log",
    wildcard_constraints:
        table=one_of(named_by(targets.exported_tables) - {"claims"}),
    localrule: True
    message:
        "Writing the table {wildcards.table} of {wildcards.study} as LaTeX"
