"""Make all of a study, and one page of its figures, claims and provenance."""

import sys
from argparse import ArgumentParser, Namespace

from vitscope.commands import workflow


def add_arguments(parser: ArgumentParser) -> None:
    workflow.add_study_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the page, or a .zip of it where it is large; report-STUDY.html if left out",
    )


def run(arguments: Namespace) -> None:
    """Make what is missing, then the page."""
    workflow.refuse_without_snakemake()
    asked = workflow.asked_for(arguments.study)
    output = arguments.output or f"report-{asked.study or asked.settings['study']}.html"
    pages = _pages_of_report_command(asked)
    for options in ([], ["--report", output]):
        done = workflow.snakemake(asked, *(asked.targets or ["all"]), *pages, *options)
        if done.returncode:
            sys.exit(done.returncode)


def _pages_of_report_command(asked: workflow.Asked) -> list[str]:
    """Return the paths of the pages of networks and of curves that have something to show."""
    from vitscope.jobs.curves import tables_of_curves
    from vitscope.jobs.figures import kinds_for_network_page_job

    study = asked.read_study()
    shown = [model for model in study.own_models if kinds_for_network_page_job(study, model)]
    curves = [f"{asked.folders['results']}/{study.name}/curves.html"]
    return [
        *(f"{asked.folders['figures']}/{study.name}/network_{model}.svg" for model in shown),
        *(curves if tables_of_curves(study) else []),
    ]
