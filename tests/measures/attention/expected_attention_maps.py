"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

KEYS = ["model", "image", "shows", "query_row", "query_column", "head"]
TABLE = Expected(KEYS, 1e-4, without=("weights", "picture"))
