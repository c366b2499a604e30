"""Throw damaged files at every reader: each must be read, or refused in one sentence.

With atheris, coverage of vitscope guides the damage; without it, a seed does. Either way a run is
a process with little memory for each reader, and the counts go to docs/security.md.
"""

import argparse
import importlib
import importlib.util
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- fuzz: begin -->", "<!-- fuzz: end -->"
MEMORY = 4 << 30
SECONDS_PER_FILE = 30
RUNS = 2000
ODD = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\x80", b"\xff", b"\0", b"-1", b"\n"]


def damaged(chance: random.Random, seeds: list[bytes]) -> bytes:
    """Return one of some files with one to six kinds of damage."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(data) + 1)
        length = chance.choice((1, 2, 4, 8, 64, 512))
        kind = chance.randrange(6)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[place : place + length] = chance.randbytes(chance.choice((0, length)))
        elif kind == 2:
            odd = chance.choice(ODD)
            data[place : place + len(odd)] = odd
        elif kind == 3:
            other = chance.choice(seeds)
            start = chance.randrange(len(other) + 1)
            data[place:place] = other[start : start + length]
        elif kind == 4:
            del data[place : place + length]
        elif chance.random() < 0.2:
            del data[place:]
    return bytes(data)


class Reading:
    """A reader at work, and what came of each file."""

    def __init__(self, name: str, folder: Path) -> None:
        from tests.security.targets import TARGETS

        self._target, self._folder = TARGETS[name], folder
        self.seeds = self._target.seeds()
        self.bases = [*self.seeds, *self._target.bombs()]
        self.counts = {"read": 0, "refused": 0}

    def __call__(self, data: bytes) -> None:
        """Read a file; any end but those two is a failure."""
        from tests.security.contained import check_sentence
        from vitscope.errors import VitscopeError

        try:
            self._target.run(self._folder, data)
        except VitscopeError as error:
            check_sentence(str(error))
            self.counts["refused"] += 1
        else:
            self.counts["read"] += 1


def by_seed(reading: Reading, runs: int, seed: int) -> None:
    """Read whole files, and damaged ones until there were as many as wanted."""
    chance = random.Random(seed)
    for data in reading.seeds:
        reading(data)
    while sum(reading.counts.values()) < runs:
        reading(damaged(chance, reading.bases))


def by_coverage(reading: Reading, runs: int, seed: int) -> None:
    """Let atheris damage the files; it never returns, so the counts are written from within."""
    import atheris

    corpus = Path("corpus")
    corpus.mkdir()
    for number, data in enumerate(reading.bases):
        (corpus / str(number)).write_bytes(data)

    def once(data: bytes) -> None:
        reading(data)
        if sum(reading.counts.values()) >= runs:
            _write_counts(reading)
            os._exit(0)

    # Half of the files are damaged whole ones: libFuzzer alone would begin with single bytes.
    def mutate(data: bytes, most: int, number: int) -> bytes:
        chance = random.Random(number)
        found = chance.random() < 0.5 and data
        return damaged(chance, [bytes(data)] if found else reading.bases)[:most]

    lengths = ["-len_control=0", "-max_len=65536"]
    limits = [f"-timeout={SECONDS_PER_FILE}", "-rss_limit_mb=0"]
    options = [f"-seed={seed + 1}", *lengths, *limits]
    atheris.Setup([sys.argv[0], *options, str(corpus)], once, custom_mutator=mutate)
    atheris.Fuzz()


def _write_counts(reading: Reading) -> None:
    Path("counts.json").write_text(json.dumps(reading.counts), encoding="utf-8")


def _child(name: str, runs: int, seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))
    if importlib.util.find_spec("atheris"):
        import atheris

        # Before anything of vitscope is imported.
        with atheris.instrument_imports(include=["vitscope"]):
            importlib.import_module("tests.security.targets")
        by_coverage(Reading(name, Path.cwd()), runs, seed)
    else:
        reading = Reading(name, Path.cwd())
        by_seed(reading, runs, seed)
        _write_counts(reading)


def _counts(name: str, runs: int, seed: int) -> dict[str, int]:
    """Fuzz one reader in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.security.fuzz", "--target", name]
        command += ["--runs", str(runs), "--seed", str(seed)]
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            left = next(Path(folder).glob("crash-*"), None)
            kept = ROOT / f"fuzz-{name.replace(' ', '-').replace(',', '')}.bin"
            if left:
                kept.write_bytes(left.read_bytes())
            sys.exit(f"{name}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
        counts: dict[str, int] = json.loads((Path(folder) / "counts.json").read_text())
        return counts


def part(outcomes: dict[str, dict[str, int]], runs: int, seed: int, engine: str) -> str:
    """Return what the page says of a run."""
    lines = [
        BEGIN,
        f"`make fuzz` on {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}:",
        f"{engine}, seed {seed}, {runs:,} files for each reader.",
        "",
        "| reader | files | read | refused in one sentence | anything else |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, counts in outcomes.items():
        total = sum(counts.values())
        lines.append(f"| {name} | {total:,} | {counts['read']:,} | {counts['refused']:,} | 0 |")
    total = sum(sum(counts.values()) for counts in outcomes.values())
    return "\n".join([*lines, "", f"Together {total:,} files.", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", help="fuzz one reader, write no page")
    parser.add_argument("--runs", type=int, default=RUNS, help="files for each reader")
    parser.add_argument("--seed", help="other files than by default, no page: a number, or `today`")
    options = parser.parse_args()
    today = options.seed == "today"
    seed = datetime.now(UTC).toordinal() if today else int(options.seed or 0)
    if options.target:
        _child(options.target, options.runs, seed)
        return
    from tests.security.targets import TARGETS

    guided = importlib.util.find_spec("atheris") is not None
    engine = "atheris, guided by coverage" if guided else "random damage (atheris is not installed)"
    outcomes = {}
    for name in TARGETS:
        outcomes[name] = _counts(name, options.runs, seed)
        print(f"{name}, seed {seed}: {outcomes[name]}", flush=True)
    if options.seed:
        return
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    counted = part(outcomes, options.runs, seed, engine)
    PAGE.write_text(before + counted + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
