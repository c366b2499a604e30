"""Make figures and other files with Snakemake, after a check that studies have them."""

import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from vitscope.commands.workflow import Asked, asked_for, refuse_without_snakemake, snakemake


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "vitscope make TARGET ... [OPTION ...]"
    about = "what to make, as figures/paper/fig9.pdf, and behind it whatever snakemake takes"
    parser.add_argument("words", nargs=REMAINDER, metavar="TARGET", help=about)


def run(arguments: Namespace) -> None:
    """Refuse targets that no study has, and leave the rest to Snakemake."""
    from vitscope.planning.targets import check_target
    from vitscope.studies.loading import find_studies

    refuse_without_snakemake()
    asked = asked_for(None)
    asked = Asked(None, asked.settings | _read_make_settings(arguments.words))
    studies = find_studies(asked.settings, "config/config.yaml or --config")
    # Other files of settings may name other studies, so do not check targets.
    if not any(word.startswith("--configfile") for word in arguments.words):
        for target in _words_until_option(arguments.words):
            check_target(target, studies, asked.folders)
    sys.exit(snakemake(asked, *arguments.words).returncode)


def _words_until_option(words: Iterable[str]) -> Iterable[str]:
    return takewhile(lambda word: not word.startswith("-"), words)


def _read_make_settings(words: list[str]) -> dict[str, Any]:
    """Return the settings that follow `--config`, as Snakemake reads them."""
    import yaml

    given = [
        _words_until_option(words[at + 1 :]) for at, word in enumerate(words) if word == "--config"
    ]
    pairs = [each.partition("=") for each in (given[-1] if given else [])]
    return {key: yaml.safe_load(value) for key, _, value in pairs}
