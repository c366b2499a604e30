"""Copy trained weights and histories to their place among the resources, with their digests."""

from pathlib import Path

from scripts._job import job
from vitscope.files.whole import copy_file, sha256_of, write_text

with job(snakemake):
    folder = Path(snakemake.params.folder)
    sums = []
    for source in sorted(Path(path) for path in snakemake.input):
        name = f"{source.parent.name}/{source.name}"
        copy_file(source, folder / name)
        sums.append(f"{sha256_of(source)}  {name}\n")
    write_text(folder / "SHA256SUMS", "".join(sums))
