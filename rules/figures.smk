"""Figures: from tables and the style file alone; each in all formats at once.

`figures/{study}/{figure}.pdf` is a figure of that study, `figures/{figure}.pdf` one of the default.
"""


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
        code=figure_code,
        kind=lambda wildcards: figure_of(wildcards)["kind"],
        members=members_of,
        published=lambda wildcards: figure_of(wildcards).get("published"),
        snapshots=lambda wildcards: shown_snapshots(figure_of(wildcards)),
        facts=facts_of,
        caption=caption_of,
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
        figure=one_of(STUDIES[DEFAULT].settings["figures"]),
    localrule: True
