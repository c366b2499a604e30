"""Figures, drawn only from tables and the style, in all formats.

`figures/mini/fig9.pdf` is a figure of the study `mini`, `figures/fig9.pdf` one of the default
study: the wildcard `figure` may begin with the folder of its study.
"""


rule draw_figure:
    """Draw a figure from the tables of its models, beside published points."""
    input:
        unpack(tables_of_figure),
        published=published_points,
        style=STYLE,
    output:
        pdf="<figures>/{figure}.pdf",
        png="<figures>/{figure}.png",
        svg=in_report("<figures>/{figure}.svg", "figure", question_of),
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
        **values_and_code_of("draw_figure"),
        # For the caption in the report; it reruns nothing.
        measured=measured_on,
    message:
        "Drawing {wildcards.figure}"
    script:
        "../scripts/draw_figure.py"


rule export_figure:
    """Write the points of a figure as CSV, on demand."""
    input:
        unpack(tables_of_figure),
        published=published_points,
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
        **values_and_code_of("export_figure"),
    message:
        "Writing the points of {wildcards.figure}"
    script:
        "../scripts/export_figure.py"


rule draw_blocks:
    """Draw the cut points of a network, on demand, which runs it without its weights."""
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
        model=MODELS,
    # It runs a network, and draws.
    conda:
        "../envs/videos.yaml"
    resources:
        **requests_of("draw_blocks"),
    params:
        **values_and_code_of("draw_blocks"),
    message:
        "Drawing the cut points of {wildcards.model}"
    script:
        "../scripts/draw_blocks.py"


rule draw_network:
    """Draw a page of a network, on demand: its blocks, values by depth, and verdicts."""
    input:
        unpack(tables_of_page),
        style=STYLE,
    output:
        pdf="<figures>/{study}/network_{model}.pdf",
        png="<figures>/{study}/network_{model}.png",
        svg=report(
            "<figures>/{study}/network_{model}.svg",
            caption="../report/network.rst",
            category="Networks",
            labels={"result": "{model}", "study": "{study}"},
        ),
    log:
        "<logs>/figures/{study}/network_{model}.log",
    wildcard_constraints:
        model=MODELS,
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **values_and_code_of("draw_network"),
    message:
        "Drawing the page of {wildcards.model}"
    script:
        "../scripts/draw_network.py"


rule draw_overview:
    """Draw the paper's figures on one page: published, measured, and the verdicts on claims."""
    input:
        unpack(tables_of_overview),
        published=published_points,
        style=STYLE,
    output:
        pdf="<figures>/{study}/overview.pdf",
        png="<figures>/{study}/overview.png",
        svg=report(
            "<figures>/{study}/overview.svg",
            caption="../report/overview.rst",
            category="Overview",
            labels={"result": "Paper against measured", "study": "{study}"},
        ),
    log:
        "<logs>/figures/{study}/overview.log",
    wildcard_constraints:
        study=one_of(STUDIES_WITH_OVERVIEW),
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **values_and_code_of("draw_overview"),
    message:
        "Drawing the overview of {wildcards.study}"
    script:
        "../scripts/draw_overview.py"


use rule draw_overview as draw_published with:
    """Draw only the published points of the overview, on demand, which measures nothing."""
    input:
        published=published_points,
        style=STYLE,
    output:
        pdf="<figures>/{study}/published.pdf",
        png="<figures>/{study}/published.png",
        svg="<figures>/{study}/published.svg",
    log:
        "<logs>/figures/{study}/published.log",
    localrule: True
    message:
        "Drawing the published points of {wildcards.study}"


rule show_curves:
    """Write an interactive page of curves by depth, on demand."""
    input:
        unpack(joined_tables(tables_of_curves)),
    output:
        page=report(
            "<results>/{study}/curves.html",
            caption="../report/curves.rst",
            category="Networks",
            labels={"result": "Curves by depth", "study": "{study}"},
        ),
    log:
        "<logs>/{study}/curves.log",
    wildcard_constraints:
        study=one_of(STUDIES_WITH_CURVES),
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **values_and_code_of("show_curves"),
    message:
        "Showing the curves of {wildcards.study}"
    script:
        "../scripts/show_curves.py"
