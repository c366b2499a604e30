"""Tables: one for all models of a study from the tables of each."""


rule tabulate:
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
        **of_job("tabulate"),
    message:
        "Writing the table {wildcards.table} of {wildcards.study}"
    script:
        "../scripts/run_job.py"
