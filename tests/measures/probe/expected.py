"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# An image whose two best classes are as good may be read as either.
TABLE = Expected(["model", "index", "of", "by"], 1e-4, 0.02, without=("penalty",))
