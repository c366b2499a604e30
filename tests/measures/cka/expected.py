"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

TABLE = Expected(["model", "index", "other_index"], 1e-3, 1e-4, without=("cka_without",))
