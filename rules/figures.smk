"""Figures, drawn only from tables and the style, in all formats unless the study names others.

`figures/mini/fig9.pdf` is a figure of the study `mini`, `figures/fig9.pdf` one of the default
study: the wildcard `figure` may begin with the folder of its study.
"""


rule draw_figure:
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
        figure=shown_in("figures", at_once=True),
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **of_job("draw_figure"),
        measured=measured_on,
    message:
        "Drawing {wildcards.figure}"
    script:
        "../scripts/run_job.py"


use rule draw_figure as draw_figure_once with:
    """Draw a figure in one format, for studies that do not ask for all formats."""
    output:
        file=in_report("<figures>/{figure}.{format}", "figure", question_of),
    log:
        "<logs>/figures/{figure}.{format}.log",
    benchmark:
        "<benchmarks>/figures/{figure}.{format}.tsv"
    wildcard_constraints:
        figure=shown_in("figures", at_once=False),
        format=one_of(targets.FORMATS),
    localrule: True
    message:
        "Drawing {wildcards.figure} as {wildcards.format}"


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
        **of_job("export_figure"),
    message:
        "Writing the points of {wildcards.figure}"
    script:
        "../scripts/run_job.py"


rule draw_blocks:
    """Draw the cut points of a network, on demand; its weights need not exist yet."""
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
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **of_job("draw_network"),
    message:
        "Drawing the page of {wildcards.model}"
    script:
        "../scripts/run_job.py"


use rule draw_network as draw_overview with:
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
    params:
        **of_job("draw_overview"),
    message:
        "Drawing the overview of {wildcards.study}"


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


use rule draw_network as show_curves with:
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
    params:
        **of_job("show_curves"),
    message:
        "Showing the curves of {wildcards.study}"
