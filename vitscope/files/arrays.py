"""Arrays of numbers, as annotations name them."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
