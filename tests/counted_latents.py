"""Count the latents of all networks of bundled studies: `python -m tests.counted_latents`."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from vitscope.planning import costs_of_job
from vitscope.studies.loading import BUNDLED_STUDIES, load_study


def counted_latents() -> dict[str, int]:
    """Return what planning would count for the bundled studies, if nothing were known yet."""
    with TemporaryDirectory() as folder:
        counted = Path(folder, "counted.json")
        for file in sorted(BUNDLED_STUDIES.glob("*.yaml")):
            sum(costs_of_job.latents_bytes(load_study(file), counted))
        found: dict[str, int] = json.loads(counted.read_text(encoding="utf-8"))
    return dict(sorted(found.items()))


if __name__ == "__main__":
    costs_of_job.COUNTED_BEFORE.write_text("{}", encoding="utf-8")
    text = json.dumps(counted_latents(), indent=1)
    costs_of_job.COUNTED_BEFORE.write_text(text + "\n", encoding="utf-8")
