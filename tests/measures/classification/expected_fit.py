"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

TABLE = Expected(["model", "metric"], 1e-3, 0.1)
