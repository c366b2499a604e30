"""Measure what vitscope promises about speed and memory, and write docs/benchmarks.md.

Both sides of every ratio run in turns in one process, so that a machine that slows down slows both.
"""

import argparse
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import extraction, workflow  # noqa: E402
from tests.bench.rows import Row, as_table  # noqa: E402

TARGET = ROOT / "docs" / "benchmarks.md"


def machine() -> list[str]:
    """Say what the numbers were measured on."""
    import os

    import torch

    info = (
        Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    )
    names = [line.partition(":")[2].strip() for line in info.splitlines() if "model name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    flags = [flag for flag in ("avx2", "avx512f", "amx_bf16") if flag in info]
    return [
        f"- processor: {names[0] if names else platform.processor()}, {os.cpu_count()} cores"
        f" ({', '.join(flags)})",
        f"- memory: {memory:.0f} GiB; {platform.system()} {platform.release()}",
        f"- Python {platform.python_version()}, torch {torch.__version__}",
        f"- {datetime.now(UTC):%Y-%m-%d}",
    ]


SECTIONS = {
    "Extraction and variance": extraction.measure,
    "Memory": extraction.measure_memory,
    "Workflow": workflow.measure,
    "Installation": workflow.measure_installation,
}


def main() -> None:
    """Run the chosen sections and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, help="print one section, write nothing")
    only = parser.parse_args().only
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Both sides of a ratio run in turns; medians are given.",
        "",
        *machine(),
        "",
    ]
    missed: list[Row] = []
    for title, measure in SECTIONS.items():
        if only in (None, title):
            print(f"{title} ...", flush=True)
            rows = measure()
            print("\n".join(as_table(rows)), flush=True)
            lines += [f"## {title}", "", *as_table(rows), ""]
            missed += [row for row in rows if not row.met]
    if only is None:
        TARGET.write_text("\n".join(lines), encoding="utf-8")
        print(f"wrote {TARGET.relative_to(ROOT)}")
    for row in missed:
        print(f"missed: {row.what}: {row.value:.3g} {row.unit}, bound {row.bound:g}")


if __name__ == "__main__":
    main()
