"""Claims: what the paper says about each figure, beside the measurements."""


rule count_claims:
    """Count each claim on the tables of a study; write and draw the verdicts.

    The front page of the report, which begins with the verdicts, is written with them.
    """
    input:
        unpack(joined_tables(Study.tables)),
        cut_points=paths_of_models(rules.convert_checkpoint.output.blocks),
        published=published_points,
        style=STYLE,
    output:
        claims="<results>/{study}/tables/claims.parquet",
        agreement="<results>/{study}/tables/agreement.parquet",
        text="<results>/{study}/tables/claims.md",
        latex="<results>/{study}/tables/claims.tex",
        page=report(
            "<results>/{study}/tables/claims.html",
            caption="../report/claims.rst",
            category="Claims and provenance",
            labels={"result": "Claims of the paper", "study": "{study}"},
        ),
        introduction=report(
            "<results>/{study}/introduction.html",
            category="Claims and provenance",
            labels={"result": "The study", "study": "{study}"},
        ),
        pdf="<figures>/{study}/claims.pdf",
        png="<figures>/{study}/claims.png",
        svg=report(
            "<figures>/{study}/claims.svg",
            caption="../report/claims.rst",
            category="Overview",
            labels={"result": "Verdicts", "study": "{study}"},
        ),
        grid_pdf="<figures>/{study}/claims_grid.pdf",
        grid_png="<figures>/{study}/claims_grid.png",
        grid_svg=report(
            "<figures>/{study}/claims_grid.svg",
            caption="../report/claims_grid.rst",
            category="Overview",
            labels={"result": "Claims by network", "study": "{study}"},
        ),
    log:
        "<logs>/{study}/tables/claims.log",
    benchmark:
        "<benchmarks>/{study}/tables/claims.tsv"
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **values_and_code_of("count_claims"),
    message:
        "Counting the claims of {wildcards.study}"
    script:
        "../scripts/count_claims.py"
