"""Make all of a study, and one page of its figures, claims and provenance."""

import sys
from argparse import ArgumentParser, Namespace

from vitscope.commands.workflow import add_study, asked_for, refuse_without_snakemake, snakemake


def add_arguments(parser: ArgumentParser) -> None:
    add_study(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the page, or a .zip of it where it is large; report-STUDY.html if left out",
    )


def run(arguments: Namespace) -> None:
    """Make what is missing, then the page."""
    refuse_without_snakemake()
    asked = asked_for(arguments.study)
    output = arguments.output or f"report-{asked.study or asked.settings['study']}.html"
    for options in ([], ["--report", output]):
        done = snakemake(asked, *asked.targets, *options)
        if done.returncode:
            sys.exit(done.returncode)
