"""Where the files lie that vitscope reads of its own, wherever it is installed."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
STYLE = PACKAGE / "drawing" / "style.mplstyle"
PUBLISHED_POINTS = PACKAGE / "claims" / "published_points"
CORRUPTION_PARAMETERS = PACKAGE / "corruptions" / "parameters.yaml"
ALEXNET_ERRORS = PACKAGE / "corruptions" / "alexnet.csv"
IMAGENET_CATEGORIES = PACKAGE / "data" / "imagenet_categories.csv"
# Links, so that a clone holds the files only once; a wheel has the files themselves.
BUNDLED_MODELS = PACKAGE / "bundled_models"

# The workflow: rules, studies, bundled weights. In a clone it stands beside the package; setup.py
# puts it inside a wheel.
_IN_WHEEL = PACKAGE / "_workflow"
ROOT = _IN_WHEEL if _IN_WHEEL.is_dir() else PACKAGE.parent
