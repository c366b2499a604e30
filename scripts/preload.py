"""What most jobs import: the processes that run them have it already (`vitscope make`).

No more than that, since each module makes every job's process larger. That a job that needs another
imports it itself costs only its time.
"""

from importlib import import_module

import_module("scripts._job")
for name in (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "matplotlib.style",
    "pandas",
    "pyarrow.pandas_compat",
    "pyarrow.parquet",
    "safetensors.torch",
    "scipy.special",
    "scipy.stats",
    "torch",
):
    import_module(name)
import_module("vitscope.networks.building.timm_import").import_timm(
    "timm.models.vision_transformer"
)
