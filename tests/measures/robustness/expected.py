"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Of 200 images: three.
TABLE = Expected(["model", "corruption", "severity"], 0.01, 0.016)
