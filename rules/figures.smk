"""Figures: from tables and the style file alone; each in all formats at once.

`figures/{study}/{figure}.pdf` is a figure of that study, `figures/{figure}.pdf` one of the default.
"""


include: "helpers/figures.smk"


rule draw_figure:
    input:
        unpack(tables_of_figure),
        published=published_of_figure,
        style=STYLE,
    output:
        pdf="<figures>/{study}/{figure}.pdf",
        png="<figures>/{study}/{figure}.png",
        svg=report(
            "<figures>/{study}/{figure}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels={"result": "{figure}", "study": "{study}"},
        ),
    log:
        "<logs>/{study}/figures/{figure}.log",
    benchmark:
        "<benchmarks>/{study}/figures/{figure}.tsv"
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        code=code_of("draw_figure"),
        module=of_study(params.figure_module, "figure"),
        tables=of_study(params.figure_tables, "figure"),
        published_columns=of_study(params.published_columns, "figure"),
        members=of_study(params.members, "figure"),
        published=of_study(params.published, "figure"),
        snapshots=of_study(params.snapshots, "figure"),
        facts=of_study(params.facts, "figure"),
        caption=of_study(params.caption, "figure"),
    message:
        "Drawing {wildcards.figure}"
    script:
        "../scripts/draw_figure.py"


use rule draw_figure as draw_default_figure with:
    output:
        pdf="<figures>/{figure}.pdf",
        png="<figures>/{figure}.png",
        svg=report(
            "<figures>/{figure}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels={"result": "{figure}", "study": DEFAULT},
        ),
    log:
        f"<logs>/{DEFAULT}/figures/default_{{figure}}.log",
    benchmark:
        f"<benchmarks>/{DEFAULT}/figures/default_{{figure}}.tsv"
    wildcard_constraints:
        figure=one_of(STUDIES[DEFAULT].figures),
    localrule: True


rule draw_blocks:
    input:
        blocks=rules.list_blocks.output.blocks,
        style=STYLE,
    output:
        pdf="<figures>/{study}/blocks_{model}.pdf",
        png="<figures>/{study}/blocks_{model}.png",
        svg="<figures>/{study}/blocks_{model}.svg",
    log:
        "<logs>/{study}/figures/blocks_{model}.log",
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        code=code_of("draw_blocks"),
        study=of_study(params.title),
        label=lambda wildcards: study_of(wildcards).models[wildcards.model].label,
    message:
        "Drawing the cut points of {wildcards.model}"
    script:
        "../scripts/draw_blocks.py"
