from pathlib import Path


def break_off(epoch: int, said: str) -> None:
    """Break a training off when it tells of an epoch."""
    if said.startswith(f"epoch {epoch}"):
        raise KeyboardInterrupt


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
