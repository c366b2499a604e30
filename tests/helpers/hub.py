import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.web import Site, running_site, status, whole

COMMIT = "0123456789" * 4


class Hub(Site):
    """A hub, which has files by `/owner/name/resolve/revision/file`."""

    def put(self, repository: str, file: str, data: bytes, revision: str = "main") -> str:
        """Put a file into a repository, and return its address."""
        return self.put_at(f"/{repository}/resolve/{revision}/{file}", data)

    def put_at(self, path: str, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        return self.at(path, whole(data, ETag=digest, X_Repo_Commit=COMMIT))


@contextmanager
def running_hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Run a hub, and let Hugging Face's library use it, with a cache of its own."""
    with running_site() as site:
        site.server.missing = status(404, X_Error_Code="RepoNotFound")
        monkeypatch.setenv("HF_ENDPOINT", site.root)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        yield Hub(site.server)
