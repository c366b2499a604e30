"""Puts the workflow into the wheel: in a clone it stands beside the package, not in it."""

from pathlib import Path
from shutil import copy, copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py

WORKFLOW = ("Snakefile", "config", "envs", "profiles", "report", "resources", "rules", "scripts")


class BuildWithWorkflow(build_py):
    """Builds the package, and the workflow in the folder where `package_data` looks for it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        place = Path(self.build_lib, "vitscope", "_workflow")
        place.mkdir(parents=True, exist_ok=True)
        for name in WORKFLOW:
            if Path(name).is_dir():
                ignored = ignore_patterns("__pycache__", ".*")
                copytree(name, place / name, ignore=ignored, dirs_exist_ok=True)
            else:
                copy(name, place)


setup(cmdclass={"build_py": BuildWithWorkflow})
