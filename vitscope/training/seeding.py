"""Random numbers of training, decided by its seed, whatever was drawn before."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch.utils.data import get_worker_info


@contextmanager
def seeded(*key: int) -> Iterator[None]:
    """Seed every generator that training draws from, and put them back afterwards.

    The key is a seed, or a seed and what is drawn by it, such as an epoch and a step: what
    comes before need not be drawn.
    """
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    # A process that augments was forked, and must not touch a GPU.
    with torch.random.fork_rng(devices=[] if get_worker_info() else None):
        seed = key[0] if len(key) == 1 else _mixed(key)
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  (timm draws from the global generators)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002


def _mixed(key: tuple[int, ...]) -> int:
    """Return a seed in which every number of the key counts, in the range that NumPy takes."""
    # With its length: a sequence is padded with zeros.
    return int(np.random.SeedSequence((len(key), *key)).generate_state(1)[0])
