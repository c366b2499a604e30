"""Archives of tar, as tests of what reads them write them."""

import io
import tarfile
from collections.abc import Mapping


def tar_of(folder: str, files: Mapping[str, bytes], mode: str = "w:gz", **options: int) -> bytes:
    """Return an archive of a folder with some files."""
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
