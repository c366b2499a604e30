"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

TABLE = Expected(["model", "index", "tokens"], 1e-3)
