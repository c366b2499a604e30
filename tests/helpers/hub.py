import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

COMMIT = "0123456789" * 4


class Handler(BaseHTTPRequestHandler):
    """Gives files by `/owner/name/resolve/revision/file`; what is not there is 404."""

    server: "Hub"

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        self.server.tokens.append(self.headers.get("Authorization"))
        data = self.server.files.get(self.path)
        self.send_response(404 if data is None else 200)
        if data is None:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", hashlib.sha256(data or b"").hexdigest())
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        if self.command == "GET" and data is not None:
            self.wfile.write(data)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


class Hub(ThreadingHTTPServer):
    """A hub that runs, with its files by their addresses."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.tokens: list[str | None] = []
        self.root = f"http://127.0.0.1:{self.server_port}"

    def put(self, repository: str, file: str, data: bytes, revision: str = "main") -> str:
        """Put a file into a repository, and return its address."""
        place = f"/{repository}/resolve/{revision}/{file}"
        self.files[place] = data
        return self.root + place


@contextmanager
def running_hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Run a hub, and let Hugging Face's library use it, with a cache of its own."""
    hub = Hub()
    monkeypatch.setenv("HF_ENDPOINT", hub.root)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    Thread(target=hub.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
