"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# In percentage points, of 500 images: two.
TABLE = Expected(["model", "frequency"], 0.01, 0.4)
