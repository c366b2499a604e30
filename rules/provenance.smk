"""Provenance: the resolved study, digests, versions, commit and seeds of a run."""


include: "helpers/provenance.smk"


rule record_run:
    input:
        unpack(tables_of_study),
        checkpoints=all_models(rules.convert_checkpoint.output.checkpoint, Study.models_shown),
        data=shown_splits,
        buildups=tables_of_buildups,
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
        code=code_of("record_run"),
        study=lambda wildcards: study_of(wildcards).settings,
        root=str(ROOT),
    message:
        "Recording the run of {wildcards.study}"
    script:
        "../scripts/record_run.py"
