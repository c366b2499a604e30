"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Of 2,000 images: four.
TABLE = Expected(["model"], 1e-3, 2e-3)
