"""Write the feature maps of a network of a study as one file for other programs."""

import sys
from argparse import ArgumentParser, Namespace

from vitscope.commands.workflow import (
    add_study_argument,
    asked_for,
    refuse_without_snakemake,
    snakemake,
)
from vitscope.jobs.latents import FORMATS


def add_arguments(parser: ArgumentParser) -> None:
    add_study_argument(parser, required=True)
    parser.add_argument("model", metavar="MODEL", help="a model of the study")
    parser.add_argument(
        "--to", choices=FORMATS, default="npz", help="the format of the file; npz if left out"
    )


def run(arguments: Namespace) -> None:
    """Extract missing latents, write the file, and print its path."""
    refuse_without_snakemake()
    asked = asked_for(arguments.study)
    folder = f"{asked.folders['results']}/{asked.study}/latents"
    target = f"{folder}/{arguments.model}.{FORMATS[arguments.to]}"
    done = snakemake(asked, target)
    if done.returncode:
        sys.exit(done.returncode)
    print(target)
