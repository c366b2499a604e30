"""What rules/figures.smk asks for: inputs, outputs and params by wildcards."""

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
