"""Provenance: the resolved study, digests, versions, commit and seeds of a run."""


rule record_run:
    """Record what it takes to make the results of a study again.

    Commit and versions are those of the moment; a new commit alone writes no new record.
    """
    input:
        unpack(joined_tables(Study.tables)),
        checkpoints=paths_of_models(rules.convert_checkpoint.output.checkpoint, Study.models_shown),
        data=splits_of_study,
        buildups=lambda wildcards: paths_of(
            rules.tabulate_buildup.output.table,
            study=wildcards.study,
            buildup=STUDIES[wildcards.study].buildups,
        ),
        claims=rules.count_claims.output.claims,
        agreement=rules.count_claims.output.agreement,
    output:
        record="<results>/{study}/run.yaml",
        page=report(
            "<results>/{study}/run.html",
            caption="../report/run.rst",
            category="Claims and provenance",
            labels={"result": "Record of the run", "study": "{study}"},
        ),
    log:
        "<logs>/{study}/run.log",
    benchmark:
        "<benchmarks>/{study}/run.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **values_and_code_of("record_run"),
    message:
        "Recording the run of {wildcards.study}"
    script:
        "../scripts/record_run.py"
