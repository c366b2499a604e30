"""Copy trained weights and histories to their place among the resources, with their digests."""

from pathlib import Path

from vitscope.jobs.job import Files, Job, Resources, Values

JOB = Job()


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Copy the files to the folder of their models, and write the digests of all that is there."""
    from vitscope.files.whole import copy_file, sha256_of, write_text

    folder = Path(values["folder"])
    for source in inputs["trained"]:
        copy_file(source, folder / bundled_name(Path(source)))
    names = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*"))
    sums = (f"{sha256_of(folder / name)}  {name}\n" for name in names)
    write_text(folder / "SHA256SUMS", "".join(sums))
    write_text(outputs["done"], "")


def bundled_name(path: Path) -> str:
    """Return where a file of a training is bundled: in a folder of its model or build-up."""
    folder = path.parent.name
    return (
        f"buildup/{folder}{path.suffix}" if folder.startswith("step_") else f"{folder}/{path.name}"
    )
