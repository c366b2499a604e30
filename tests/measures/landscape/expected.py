"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Of 128 images: two; far from the trained weights the NLL is large, and the rest is not.
TABLE = Expected(["model", "direction", "x", "y"], 5e-3, 0.016)
