"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Of a class of 200 images or more: two.
TABLE = Expected(["model", "class_name"], 0.01, 0.01)
