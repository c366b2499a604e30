"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

TABLE = Expected(["model", "attention", "head"], 1e-4, 1e-5)
