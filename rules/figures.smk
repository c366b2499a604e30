"""Figures, drawn only from tables and the style, in all formats.

`figures/mini/fig9.pdf` is a figure of the study `mini`, `figures/fig9.pdf` one of the default
study: the wildcard `figure` may begin with the folder of its study.
"""

from vitscope.jobs.curves import tables_of_curves
from vitscope.jobs.figures import (
    figures_counted_in_overview_job,
    figures_for_overview_job,
    kinds_for_network_page_job,
    models_counted_on_network_page,
)

STUDIES_WITH_OVERVIEW = {name for name in STUDIES if figures_for_overview_job(STUDIES[name])}
STUDIES_WITH_CURVES = {name for name in STUDIES if tables_of_curves(STUDIES[name])}


def tables_of_figure(wildcards):
    study = study_of(wildcards)
    figure = study.figures[names_of(wildcards)["figure"]]
    return {
        table: collect(OF_SUBJECT, study=study.name, table=table, model=figure.subjects(table))
        for table in figure.tables
    }


def labels_of_shown(wildcards):
    """Return the name of a figure or video in the report, and what it shows."""
    study, (key,) = study_of(wildcards), (key for key in SHOWN if hasattr(wildcards, key))
    name = names_of(wildcards)[key]
    if key == "figure":
        title = describing.title_of_figure(study, name)
    else:
        title = {"video": "A network over a video", "buildup": "How AlterNet is built up"}[key]
    labels = {"result": name, "shows": as_inert(title), "study": study.name}
    return labels | ({"format": wildcards.format} if hasattr(wildcards, "format") else {})


def question_of(wildcards):
    """Return the question that a figure is about, which is its subcategory in the report."""
    study = study_of(wildcards)
    figure = study.figures[names_of(wildcards)["figure"]]
    return as_inert(registry.of(study).declared(figure.measure).question)


def in_report(path, caption, subcategory):
    """Return the path of a figure, marked for the section of figures in the report."""
    place = {"category": "Figures", "subcategory": subcategory}
    return report(path, caption=f"../report/{caption}.rst", labels=labels_of_shown, **place)


def measured_on(wildcards, output):
    """Return how many images a figure was measured on; the caption reads it from the SVG."""
    return describing.MeasuredOn(next((path for path in output if path.endswith(".svg")), None))


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
        **values_and_code_of("draw_blocks"),
    message:
        "Drawing the cut points of {wildcards.model}"
    script:
        "../scripts/draw_blocks.py"


def tables_of_page(wildcards):
    """Return the tables of a network's page and of other trainings that its verdicts count."""
    study, kinds, model = study_of(wildcards), registry.kinds(), wildcards.model
    models, every = {}, {model}
    for kind in kinds_for_network_page_job(study, model):
        counted = models_counted_on_network_page(study, kind, model)
        every.update(counted)
        for table in kinds[kind].tables:
            models.setdefault(table, set()).update(counted)
    return {
        table: collect(OF_SUBJECT, study=study.name, table=table, model=sorted(of))
        for table, of in sorted((models | {"blocks": every}).items())
    }


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
        **values_and_code_of("draw_network"),
    message:
        "Drawing the page of {wildcards.model}"
    script:
        "../scripts/draw_network.py"


def tables_of_overview(wildcards):
    """Return the tables of models and of build-ups, by name, that the overview shows and counts."""
    study = study_of(wildcards)
    shown = figures_for_overview_job(study)
    figures = [study.figures[name] for name in figures_counted_in_overview_job(study)]
    figures += [study.figures[name] for name in shown if name in study.figures]
    models = {model for each in figures for model in each.models}
    subjects = {}
    for figure in figures:
        for table in figure.measures:
            subjects.setdefault(table, set()).update(figure.subjects(table))
    names = {"study": study.name}
    buildups = rules.tabulate_buildup.output.table
    return {
        "cut_points": paths_of(
            rules.convert_checkpoint.output.blocks, model=sorted(models), **names
        ),
        **{
            f"buildup_{name}": path_of(buildups, wildcards, buildup=name)
            for name in shown
            if name in study.buildups
        },
        **{
            table: [OF_SUBJECT.format(table=table, model=each, **names) for each in sorted(of)]
            for table, of in subjects.items()
        },
    }


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
