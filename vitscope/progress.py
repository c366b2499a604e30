"""Say now and then how far a long job is, and how long it will still take."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

Say = Callable[[str], None]

SECONDS_BETWEEN_NEWS = 5.0
# After this many seconds without a message, a line says that work goes on.
SECONDS_OF_SILENCE = 10.0


def say_on_stderr(text: str) -> None:
    """Write one line about the progress of the work."""
    print(text, file=sys.stderr, flush=True)


class Clock:
    """Says when the next line about some work is due: every few seconds, and not more often."""

    def __init__(self) -> None:
        self._start = self._last = monotonic()

    def seconds_if_due(self, finished: bool = False) -> float | None:
        """Return how long the work has taken if a line is due now, as it is at its end."""
        now = monotonic()
        if not finished and now - self._last < SECONDS_BETWEEN_NEWS:
            return None
        self._last = now
        return now - self._start


def _duration(seconds: float) -> str:
    """Return a duration in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _rate(done: float, seconds: float, unit: str) -> str:
    """Return a rate per second, or the time that one takes where that is longer."""
    if not done or not seconds:
        return ""
    if done >= seconds:
        return f", {done / seconds:.3g} {unit} per s"
    return f", {seconds / done:.3g} s each"


class Progress:
    """Count what is done of `total`, and say it: at most a line every few seconds, and the last.

    `unit` is what is counted, in the plural.
    """

    def __init__(self, total: int, unit: str, say: Say = print) -> None:
        self._total, self._unit, self._say = total, unit, say
        self._done = 0
        self._clock = Clock()

    def advance(self, count: int = 1) -> None:
        """Count what was just done."""
        self._done += count
        finished = self._done >= self._total
        seconds = self._clock.seconds_if_due(finished)
        if seconds is None:
            return
        left = (
            f"took {_duration(seconds)}"
            if finished
            else f"about {_duration(seconds * (self._total - self._done) / self._done)} left"
        )
        rate = _rate(self._done, seconds, self._unit)
        self._say(f"{self._done} of {self._total} {self._unit}{rate}, {left}")


class AtWork:
    """Says that work goes on, and how far it is, after a while without other messages."""

    def __init__(self, what: str, say: Say) -> None:
        self._what, self._say = what, say
        self._start = self._last = monotonic()
        self._images = 0

    def count(self, images: int) -> None:
        """Count images that a network was given."""
        self._images += images

    def heard(self) -> None:
        """Take note that something was said."""
        self._last = monotonic()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Report until the end of the block."""
        ended = Event()

        def watch() -> None:
            while not ended.wait(max(0.0, self._last + SECONDS_OF_SILENCE - monotonic())):
                if monotonic() - self._last < SECONDS_OF_SILENCE:
                    continue
                seconds = monotonic() - self._start
                images = f"{self._images} images{_rate(self._images, seconds, 'images')}, "
                said = images if self._images else ""
                self._say(f"{self._what}: {said}{_duration(seconds)} so far")
                self.heard()

        # A daemon thread does not keep the process from ending.
        Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()
