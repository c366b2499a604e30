"""Report now and then how far a long job is, and how long it will still take."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

Say = Callable[[str], None]

SECONDS_BETWEEN_NEWS = 5.0
# After this many seconds without a message, a line says that the job still runs.
SECONDS_OF_SILENCE = 10.0


def say_on_stderr(text: str) -> None:
    """Write one line about the progress of the work."""
    print(text, file=sys.stderr, flush=True)


class Clock:
    """Tells when the next progress line is due: at most one every `SECONDS_BETWEEN_NEWS`."""

    def __init__(self) -> None:
        self._start = self._last = monotonic()

    def seconds_if_due(self, finished: bool = False) -> float | None:
        """Return the seconds since the start if a line is due or all is `finished`, else None."""
        now = monotonic()
        if not finished and now - self._last < SECONDS_BETWEEN_NEWS:
            return None
        self._last = now
        return now - self._start


def _format_duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _format_rate(done: float, seconds: float, unit: str) -> str:
    """Return a rate as text: units per second, or seconds per unit if below one per second."""
    if not done or not seconds:
        return ""
    if done >= seconds:
        return f", {done / seconds:.3g} {unit} per s"
    return f", {seconds / done:.3g} s each"


class Progress:
    """Counts what is done of `total`, and prints a line every few seconds and at the end.

    `unit` is the name of what is counted, in the plural.
    """

    def __init__(self, total: int, unit: str, say: Say = print) -> None:
        self._total, self._unit, self._say = total, unit, say
        self._done = 0
        self._clock = Clock()

    def advance(self, count: int = 1) -> None:
        """Add `count` to what is done, and print a line if one is due."""
        self._done += count
        finished = self._done >= self._total
        seconds = self._clock.seconds_if_due(finished)
        if seconds is None:
            return
        left = (
            f"took {_format_duration(seconds)}"
            if finished
            else f"about {_format_duration(seconds * (self._total - self._done) / self._done)} left"
        )
        rate = _format_rate(self._done, seconds, self._unit)
        self._say(f"{self._done} of {self._total} {self._unit}{rate}, {left}")


class AtWork:
    """Reports that a job still runs, after `SECONDS_OF_SILENCE` without other messages."""

    def __init__(self, what: str, say: Say) -> None:
        self._what, self._say = what, say
        self._start = self._last = monotonic()
        self._images = 0

    def count(self, images: int) -> None:
        """Count images that were given to a network."""
        self._images += images

    def heard(self) -> None:
        """Note that something was printed, so that the next report can wait."""
        self._last = monotonic()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Report from a thread until the end of the block."""
        ended = Event()

        def report_after_silence() -> None:
            while not ended.wait(max(0.0, self._last + SECONDS_OF_SILENCE - monotonic())):
                if monotonic() - self._last < SECONDS_OF_SILENCE:
                    continue
                seconds = monotonic() - self._start
                images = f"{self._images} images{_format_rate(self._images, seconds, 'images')}, "
                said = images if self._images else ""
                self._say(f"{self._what}: {said}{_format_duration(seconds)} so far")
                self.heard()

        # A daemon thread does not keep the process from ending.
        Thread(target=report_after_silence, daemon=True).start()
        try:
            yield
        finally:
            ended.set()
