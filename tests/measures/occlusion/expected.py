"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Of 200 images in three draws: two decisions, or as much of the accuracy that is kept.
TABLE = Expected(["model", "change", "grid", "dropped"], 0.01, 0.0034)
