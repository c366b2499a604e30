"""The console command `vitscope`, which the README explains.

Each subcommand is a module of `vitscope/commands/` with the functions `add_arguments` and `run`,
and has a line in `COMMANDS`. Only the module of the requested subcommand is imported.
"""

import sys
from argparse import ArgumentParser
from importlib import import_module

from vitscope import __version__
from vitscope.errors import VitscopeError
from vitscope.networks.building import own_code

COMMANDS = {
    "check": "show where the networks of a study are read, and prove that it is right",
    "export": "write the feature maps of a network for other programs",
    "init": "write a study of a network and a folder of images",
    "make": "make figures and other files, once it is known that studies have them",
    "plan": "tell what a study will cost, before anything runs",
    "report": "make all of a study, and one page of it",
}


def main() -> None:
    """Run the requested subcommand; on an error of the user, print its sentence and exit."""
    every = ArgumentParser(prog="vitscope", description="Measure what vision transformers do.")
    every.add_argument("--version", action="version", version=f"vitscope {__version__}")
    choice = every.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, about in COMMANDS.items():
        choice.add_parser(name, help=about, add_help=False)
    command = every.parse_args(sys.argv[1:2]).command
    module = import_module(f"vitscope.commands.{command}")
    parser = ArgumentParser(prog=f"vitscope {command}", description=COMMANDS[command].capitalize())
    module.add_arguments(parser)
    try:
        module.run(parser.parse_args(sys.argv[2:]))
    except VitscopeError as error:
        sys.exit(f"vitscope: {error}")
    except Exception as error:
        if sentence := own_code.explain_network_code_failure(error):
            sys.exit(f"vitscope: {VitscopeError(sentence)}")
        raise


if __name__ == "__main__":
    main()
