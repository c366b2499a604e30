"""Where the files lie that vitscope reads of its own, wherever it is installed."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
STYLE = PACKAGE / "drawing" / "style.mplstyle"
PUBLISHED_POINTS = PACKAGE / "claims" / "published_points"
SCHEMAS = PACKAGE / "settings" / "schemas"
CORRUPTION_PARAMETERS = PACKAGE / "corruptions" / "parameters.yaml"

# Of a clone, which vitscope is installed from as the workflow: rules, studies, bundled weights.
ROOT = PACKAGE.parent
