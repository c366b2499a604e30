"""Files in repositories of the Hugging Face Hub."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError, quoted

HUB = "https://huggingface.co"
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class OnHub:
    repository: str
    file: str = WEIGHTS

    @property
    def address(self) -> str:
        name, _, revision = self.repository.partition("@")
        return f"{_hub_endpoint()}/{name}/resolve/{revision or 'main'}/{self.file}"

    def fetch(self, label: str) -> Path:
        """Return the file in Hugging Face's cache, after downloading it if it is missing."""
        # Import here, so that studies without files from the Hub need not wait for the import.
        from huggingface_hub import hf_hub_download

        name, _, revision = self.repository.partition("@")
        options: dict[str, Any] = {"revision": revision or None, "endpoint": _hub_endpoint()}
        with suppress(OSError, ValueError):
            return Path(hf_hub_download(name, self.file, local_files_only=True, **options))
        try:
            return Path(hf_hub_download(name, self.file, **options))
        except (OSError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".:")
            raise VitscopeError(
                f"{label}: {self.file} of {quoted(self.repository)} cannot be had from the hub "
                f"({type(error).__name__}: {reason}): correct the name, set HF_TOKEN where the "
                f"owner asks for one, or try again with a connection."
            ) from error


def _hub_endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
