"""Paths of the files that come with vitscope, wherever it is installed."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
STYLE = PACKAGE / "drawing" / "style.mplstyle"
PUBLISHED_POINTS = PACKAGE / "claims" / "published_points"
CORRUPTION_PARAMETERS = PACKAGE / "corruptions" / "parameters.yaml"
ALEXNET_ERRORS = PACKAGE / "corruptions" / "alexnet.csv"
IMAGENET_CATEGORIES = PACKAGE / "data" / "imagenet_categories.csv"

# The folder of the workflow, with rules, studies and bundled weights: in a clone, the folder above
# the package; in a wheel, a folder inside the package, which setup.py fills.
_IN_WHEEL = PACKAGE / "_workflow"
ROOT = _IN_WHEEL if _IN_WHEEL.is_dir() else PACKAGE.parent
