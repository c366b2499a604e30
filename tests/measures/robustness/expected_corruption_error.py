"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Of 200 images at two severities: two.
TABLE = Expected(["model", "corruption"], 1e-3, 7e-3)
