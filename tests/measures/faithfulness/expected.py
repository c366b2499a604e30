"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# The order of pixels whose values in a map are nearly equal is open, and with it what is deleted.
TABLE = Expected(["model", "method", "change", "share"], 0.02, 0.005)
