"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Areas are those of squares, which are one of a few: another one is off by more than any rounding.
TABLE = Expected(["model", "index"], 1e-4, without=("contributions",))
