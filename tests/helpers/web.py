import hmac
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Hand each request to the answers of its path: one after the other, the last for ever."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.requests.append((path, self.headers))
        answers = self.server.answers.get(path, [self.server.missing])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        self.close_connection = True
        answer(self)

    def do_HEAD(self) -> None:
        self.do_GET()

    def begin(self, code: int, **headers: object) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, list[Answer]] = {}
        self.missing = status(404)
        self.requests: list[tuple[str, Message]] = []
        self.released = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients of these tests hang up when they have heard enough."""


@dataclass
class Site:
    """Addresses of a running server, and what was asked of it."""

    server: Server
    root: str = field(init=False)

    def __post_init__(self) -> None:
        self.root = f"http://127.0.0.1:{self.server.server_port}"

    def at(self, path: str, *answers: Answer) -> str:
        self.server.answers[path] = list(answers)
        return self.root + path

    def asked(self, path: str) -> list[Message]:
        return [headers for where, headers in self.server.requests if where == path]


@contextmanager
def running_site() -> Iterator[Site]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Site(server)
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def whole(data: bytes, **headers: object) -> Answer:
    """Send everything, whatever was asked."""
    return broken(data, len(data), **headers)


def ranged(data: bytes, etag: str) -> Answer:
    """Send what was asked: the rest, if the version is still the one of If-Range."""

    def answer(handler: Handler) -> None:
        span = handler.headers["Range"]
        if span is None or handler.headers["If-Range"] != etag:
            return whole(data, ETag=etag)(handler)
        start = int(span.removeprefix("bytes=").removesuffix("-"))
        if start >= len(data):
            return handler.begin(416, Content_Range=f"bytes */{len(data)}", Content_Length=0)
        rest = data[start:]
        content_range = f"bytes {start}-{len(data) - 1}/{len(data)}"
        handler.begin(206, Content_Length=len(rest), Content_Range=content_range, ETag=etag)
        handler.wfile.write(rest)
        return None

    return answer


def broken(data: bytes, after: int, **headers: object) -> Answer:
    """Announce everything, and hang up after some bytes."""

    def answer(handler: Handler) -> None:
        handler.begin(200, Content_Length=len(data), **headers)
        if handler.command == "GET":
            handler.wfile.write(data[:after])

    return answer


def stalling(data: bytes, after: int, **headers: object) -> Answer:
    """Announce everything, send some bytes, and then nothing until the test is over."""

    def answer(handler: Handler) -> None:
        broken(data, after, **headers)(handler)
        handler.wfile.flush()
        silent(handler)

    return answer


def silent(handler: Handler) -> None:
    handler.server.released.wait()


def chunked(data: bytes, complete: bool = True) -> Answer:
    """Send without telling the size; leave out the end if not `complete`."""

    def answer(handler: Handler) -> None:
        handler.begin(200, Transfer_Encoding="chunked")
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        if complete:
            handler.wfile.write(b"0\r\n\r\n")

    return answer


def status(code: int, **headers: object) -> Answer:
    return lambda handler: handler.begin(code, Content_Length=0, **headers)


def leading_to(storage: Site, path: str, *answers: Answer, expired: bool = False) -> Answer:
    """Lead on to a file at another host, as GitHub does to the storage of its releases.

    Each request gets an address of its own, whose signature covers host and path. The storage
    answers it once, and others not at all; where addresses have `expired`, none.
    """
    key, given = secrets.token_bytes(), set[str]()
    # Another host than the 127.0.0.1 that all else is asked of.
    host = f"localhost:{storage.server.server_port}"
    left = list(answers)

    def sign(host: str, path: str, number: str) -> str:
        return hmac.digest(key, f"GET\n{host}\n{path}\n{number}".encode(), "sha256").hex()

    def lead_on(handler: Handler) -> None:
        number = secrets.token_hex(8)
        if not expired:
            given.add(number)
        signature = sign(host, path, number)
        query = {"X-Amz-Number": number, "X-Amz-Signature": signature}
        handler.begin(302, Location=f"http://{host}{path}?{urlencode(query)}", Content_Length=0)

    def answer_once(handler: Handler) -> None:
        parts = urlsplit(handler.path)
        query = {name: value for name, (value,) in parse_qs(parts.query).items()}
        number = query.get("X-Amz-Number", "")
        expected = sign(handler.headers["Host"], parts.path, number)
        if number not in given or query.get("X-Amz-Signature") != expected:
            error = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"
            handler.begin(403, Content_Length=len(error))
            handler.wfile.write(error)
            return
        given.remove(number)
        (left.pop(0) if len(left) > 1 else left[0])(handler)

    storage.at(path, answer_once)
    return lead_on
