"""Copy trained weights and histories to their place among the resources, with their digests."""

from pathlib import Path

from scripts._job import job
from vitscope.files.whole import copy_file, sha256_of, write_text

with job(snakemake):
    folder = Path(snakemake.params.folder)
    for source, name in zip(snakemake.input, snakemake.params.names, strict=True):
        copy_file(source, folder / name)
    names = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*"))
    sums = (f"{sha256_of(folder / name)}  {name}\n" for name in names)
    write_text(folder / "SHA256SUMS", "".join(sums))
