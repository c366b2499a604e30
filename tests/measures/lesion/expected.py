"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# In percentage points, of 1,000 images: three.
TABLE = Expected(["model", "index"], 0.01, 0.3)
