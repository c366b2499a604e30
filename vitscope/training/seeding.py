"""Random numbers of training, which are those of its seed whatever was drawn before."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed every generator that training draws from, and put them back afterwards."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  (timm draws from the global generators)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002
