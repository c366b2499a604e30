"""Measure what vitscope promises about speed and memory, and write docs/benchmarks.md.

Both sides of every ratio run in turns in one process, so that a machine that slows down slows both.
"""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import (  # noqa: E402
    attention,
    cka,
    classification,
    extraction,
    fourier,
    frequency_noise,
    hessian,
    landscape,
    lesions,
    profile,
    robustness,
    training,
    workflow,
)
from bench.rows import Row, as_table  # noqa: E402

TARGET = ROOT / "docs" / "benchmarks.md"


def machine() -> str:
    """Say what the numbers were measured on, and when."""
    import torch

    info = (
        Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    )
    names = [line.partition(":")[2].strip() for line in info.splitlines() if "model name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    flags = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in info]
    return (
        f"*{names[0] if names else platform.processor()}, {os.cpu_count()} cores "
        f"({', '.join(flags)}), {memory:.0f} GiB; {platform.system()}, Python "
        f"{platform.python_version()}, torch {torch.__version__}; {datetime.now(UTC):%Y-%m-%d}*"
    )


SECTIONS = {
    "Extraction and variance": extraction.measure,
    "Memory": extraction.measure_memory,
    "Attention": attention.measure,
    "Fourier": fourier.measure,
    "CKA": cka.measure,
    "Lesions": lesions.measure,
    "Noise of one frequency": frequency_noise.measure,
    "Classification": classification.measure,
    "Robustness": robustness.measure,
    "Landscape": landscape.measure,
    "Hessian": hessian.measure,
    "Training": training.measure,
    "Workflow": workflow.measure,
    "Where the time goes": profile.measure,
    "Installation": workflow.measure_installation,
}


# Measured by a command of its own, on a machine that has one.
GPU = "GPU"


def page(sections: dict[str, str]) -> str:
    """Return the whole page."""
    head = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Both sides of a ratio run in turns; medians are given. Each part",
        "says which machine it was measured on.",
    ]
    parts = [f"## {title}\n\n{sections[title]}" for title in (*SECTIONS, GPU) if title in sections]
    return "\n\n".join(["\n".join(head), *parts]) + "\n"


def split_at(heading: str, text: str) -> dict[str, str]:
    """Return what stands below each heading of a level, such as `##`, by its title."""
    parts = (part.partition("\n") for part in f"\n{text}".split(f"\n{heading} ")[1:])
    return {title: body.strip() for title, _, body in parts}


def measured_before() -> dict[str, str]:
    """Return the sections of the page as it is."""
    return split_at("##", TARGET.read_text(encoding="utf-8") if TARGET.exists() else "")


def main() -> None:
    """Run the chosen sections and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, help="measure one section, keep the others")
    only = parser.parse_args().only
    before = measured_before()
    sections = {title: body for title, body in before.items() if only or title == GPU}
    missed: list[Row] = []
    for title in [only] if only else SECTIONS:
        print(f"{title} ...", flush=True)
        rows = SECTIONS[title]()
        sections[title] = "\n".join([machine(), "", *as_table(rows)])
        print(sections[title], flush=True)
        missed += [row for row in rows if not row.met]
    TARGET.write_text(page(sections), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")
    for row in missed:
        print(f"missed: {row.what}: {row.value:.3g} {row.unit}, bound {row.bound:g}")


if __name__ == "__main__":
    main()
