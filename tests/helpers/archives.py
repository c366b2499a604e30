import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def tar_of(folder: str, files: Mapping[str, bytes], mode: str = "w:gz", **options: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode, **options) as tar:  # type: ignore[call-overload]
        head = tarfile.TarInfo(folder)
        head.type = tarfile.DIRTYPE
        tar.addfile(head)
        for name, data in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def repacked(
    path: Path, stored: bytes, pickled: bytes | None = None, method: int = zipfile.ZIP_STORED
) -> Path:
    """Write the members of a file of torch, by another method or with another pickle."""
    with zipfile.ZipFile(io.BytesIO(stored)) as old, zipfile.ZipFile(path, "w") as new:
        for member in old.infolist():
            replaced = pickled if member.filename.endswith("/data.pkl") else None
            data = old.read(member) if replaced is None else replaced
            new.writestr(member, data, method)
    return path
