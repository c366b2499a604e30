"""Figures: from tables and the style file alone; each in all formats at once.

`figures/mini/fig9.pdf` is a figure of that study, `figures/fig9.pdf` one of the default study: the
wildcard `figure` has the folder of its study before it, or none.
"""


rule draw_figure:
    input:
        unpack(tables_of_figure),
        published=published_of_shown,
        style=STYLE,
    output:
        pdf="<figures>/{figure}.pdf",
        png="<figures>/{figure}.png",
        svg=report(
            "<figures>/{figure}.svg",
            caption="../report/figure.rst",
            category="Figures",
            subcategory=question_of,
            labels=labels_of_shown,
        ),
    log:
        "<logs>/figures/{figure}.log",
    benchmark:
        "<benchmarks>/figures/{figure}.tsv"
    wildcard_constraints:
        figure=shown_in("figures"),
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **of_job("draw_figure"),
    message:
        "Drawing {wildcards.figure}"
    script:
        "../scripts/run_job.py"


rule export_figure:
    """On demand, the points of a figure as CSV."""
    input:
        unpack(tables_of_figure),
        published=published_of_shown,
    output:
        csv="<figures>/{figure}.csv",
    log:
        "<logs>/figures/{figure}_csv.log",
    wildcard_constraints:
        figure=shown_in("figures"),
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **of_job("export_figure"),
    message:
        "Writing the points of {wildcards.figure}"
    script:
        "../scripts/run_job.py"


rule draw_blocks:
    """On demand, the cut points of a network, whose weights need not exist yet."""
    input:
        style=STYLE,
    output:
        pdf="<figures>/{folder}blocks_{model}.pdf",
        png="<figures>/{folder}blocks_{model}.png",
        svg="<figures>/{folder}blocks_{model}.svg",
    log:
        "<logs>/figures/{folder}blocks_{model}.log",
    wildcard_constraints:
        folder=one_of({"", *(f"{study}/" for study in STUDIES)}),
    conda:
        "../envs/videos.yaml"
    resources:
        **requests_of("draw_blocks"),
    params:
        **of_job("draw_blocks"),
    message:
        "Drawing the cut points of {wildcards.model}"
    script:
        "../scripts/run_job.py"
