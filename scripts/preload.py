"""What most jobs import: the processes that run them have it already (`vitscope make`).

No more than that, since each module makes every job's process larger. That a job that needs another
imports it itself costs only its time.
"""

import atexit
import os
from importlib import import_module
from pathlib import Path

CACHE = "TORCHINDUCTOR_CACHE_DIR"
given = CACHE in os.environ
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
# A job imports 45 modules of vitscope in 0.1 s; all of them take 0.7 s, once.
package = Path(str(import_module("vitscope").__file__)).parent
for folder in ("files", "data", "networks", "training", "claims", "measures", "drawing", "jobs"):
    for path in sorted((package / folder).rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        import_module(".".join(parts).removesuffix(".__init__"))
# At the end of each process the compiler sums up what it has compiled, which takes 0.06 s.
atexit.unregister(import_module("torch._dynamo.utils").dump_compile_times)
if not given and CACHE in os.environ:
    # timm imports torch's compiler, which makes a folder for its cache; jobs that compile make it.
    Path(os.environ.pop(CACHE)).rmdir()
