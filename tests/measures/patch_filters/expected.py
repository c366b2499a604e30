"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

TABLE = Expected(["model", "of", "number"], 1e-4, 1e-6, without=("values",))
