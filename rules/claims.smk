"""Claims: what the paper says of each figure, beside what was measured."""


include: "helpers/claims.smk"


rule count_claims:
    input:
        unpack(tables_of_study),
        cut_points=all_models(rules.list_blocks.output.blocks),
        published=published_files,
    output:
        claims="<results>/{study}/tables/claims.parquet",
        agreement="<results>/{study}/tables/agreement.parquet",
        text="<results>/{study}/tables/claims.md",
        page=report(
            "<results>/{study}/tables/claims.html",
            caption="../report/claims.rst",
            category="Claims and provenance",
            labels={"result": "Claims of the paper", "study": "{study}"},
        ),
    log:
        "<logs>/{study}/tables/claims.log",
    benchmark:
        "<benchmarks>/{study}/tables/claims.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code_of("count_claims"),
        study=of_study(params.title),
        figures=of_study(params.claimed_figures),
        labels=of_study(params.labels),
        repeats=of_study(Study.repeats),
    message:
        "Counting the claims of {wildcards.study}"
    script:
        "../scripts/count_claims.py"


rule draw_claims:
    input:
        claims=rules.count_claims.output.claims,
        style=STYLE,
    output:
        pdf="<figures>/{study}/claims.pdf",
        png="<figures>/{study}/claims.png",
        svg=report(
            "<figures>/{study}/claims.svg",
            caption="../report/claims.rst",
            category="Claims and provenance",
            labels={"result": "Verdicts", "study": "{study}"},
        ),
    log:
        "<logs>/{study}/figures/claims.log",
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        code=code_of("draw_claims"),
        study=of_study(params.title),
        labels=of_study(params.labels),
    message:
        "Drawing the claims of {wildcards.study}"
    script:
        "../scripts/draw_claims.py"
