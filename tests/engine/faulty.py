"""An HTTP remote in memory, on loopback, that fails as it is told to, and keeps a log of what it was asked."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from anfbuild.engine.remote.entry import decode, encode
from anfbuild.engine.result import Result

_MAX_REQUESTS = 2000
_ENDLESS = 64 << 20
"""Bytes after which an endless body ends all the same."""
_DRIPS = 200


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]


class Handler(BaseHTTPRequestHandler):
    """Keeps what is PUT, gives it for GET and HEAD, unless a fault comes first."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are written apart: the body would wait 40 ms
    server: _Server

    def do_GET(self) -> None:
        self._handle()

    def do_HEAD(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def log_message(self, format: str, *args: object) -> None:
        pass

    @property
    def kept(self) -> bytes | None:
        """What is kept under the path that was asked for."""
        return self.server.remote.kept.get(self.path)

    def answer(self, status: int, body: bytes = b"", length: int | None = None, **headers: str) -> None:
        """A response of `body`, whose length is told as `length`."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _handle(self) -> None:
        remote = self.server.remote
        remote.log.append(Asked(self.command, self.path, dict(self.headers)))
        assert len(remote.log) < _MAX_REQUESTS
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        for method, prefix, fault in remote.faults:
            if method == self.command and self.path.startswith(prefix):
                try:
                    return fault(self)
                except OSError:  # the client went away
                    self.close_connection = True
                    return None
        if self.command == "PUT":
            remote.kept[self.path] = body
            return self.answer(201)
        return self.answer(404) if self.kept is None else self.answer(200, self.kept)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    remote: Faulty

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class Faulty:
    """The server's state; change it at any time."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.kept: dict[str, bytes] = {}
        self.log: list[Asked] = []
        self.faults: list[tuple[str, str, Fault]] = []
        self.ended = threading.Event()

    def fail(self, method: str, prefix: str, fault: Fault) -> None:
        """Answer requests of `method` for paths that start with `prefix` with `fault`."""
        self.faults.append((method, prefix, fault))

    def asked(self, method: str, prefix: str = "/") -> list[str]:
        """The paths asked for, in order."""
        return [asked.path for asked in self.log if asked.method == method and asked.path.startswith(prefix)]


Fault = Callable[[Handler], None]


@contextmanager
def serve() -> Iterator[Faulty]:
    """A faulty remote on a port of its own."""
    with _Server(("127.0.0.1", 0), Handler) as server:
        server.remote = Faulty(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.remote
        finally:
            server.remote.ended.set()
            server.shutdown()
            thread.join()


# ---- faults


def status(code: int) -> Fault:
    """Nothing but a status."""
    return lambda handler: handler.answer(code)


def close(handler: Handler) -> None:
    """No answer at all."""
    handler.close_connection = True


def stall(handler: Handler) -> None:
    """Nothing, for long."""
    handler.server.remote.ended.wait(10)
    handler.close_connection = True


def drip_head(handler: Handler) -> None:
    """A header that never ends, byte by byte."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _drip(handler, b"x" * _DRIPS)


def drip_body(handler: Handler) -> None:
    """What is asked for, byte by byte."""
    body = (handler.kept or b"") + b" " * _DRIPS
    handler.answer(200, b"", length=len(body))
    _drip(handler, body)


def _drip(handler: Handler, data: bytes) -> None:
    for index in range(len(data)):
        handler.wfile.write(data[index : index + 1])
        if handler.server.remote.ended.wait(0.05):
            return


def truncate(handler: Handler) -> None:
    """Half of it, then the end of the connection."""
    body = handler.kept or b""
    handler.answer(200, body[: len(body) // 2], length=len(body))
    handler.close_connection = True


def shorten(handler: Handler) -> None:
    """Half of it, as if that were all."""
    body = handler.kept or b""
    handler.answer(200, body[: len(body) // 2])


def flip(handler: Handler) -> None:
    """As many bytes, but others."""
    handler.answer(200, bytes(byte ^ 1 for byte in handler.kept or b"?"))


def extend(handler: Handler) -> None:
    """It, and more."""
    handler.answer(200, (handler.kept or b"") + b"more")


def endless(handler: Handler) -> None:
    """It, and more and more, without a length."""
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(handler.kept or b"")
    for _ in range(_ENDLESS >> 16):
        handler.wfile.write(b" " * (1 << 16))
    handler.close_connection = True


def garbage(handler: Handler) -> None:
    """Text that is no JSON."""
    handler.answer(200, b'{"outputFiles": [')


def nested(handler: Handler) -> None:
    """JSON that is deep."""
    handler.answer(200, b"[" * 100_000)


def odd(handler: Handler) -> None:
    """JSON of another shape."""
    handler.answer(
        200, b'{"outputFiles": [{"path": "a", "digest": {"hash": "b", "sizeBytes": 1e999}}], "stdoutRaw": ""}'
    )


def other_key(handler: Handler) -> None:
    """The entry of another key."""
    others = [body for path, body in handler.server.remote.kept.items() if path != handler.path and "/ac/" in path]
    handler.answer(200, others[0] if others else b"{}")


def forge(change: Callable[[Result], Result]) -> Fault:
    """A well bound entry with other outputs."""

    def fault(handler: Handler) -> None:
        if handler.kept is None:
            return handler.answer(404)
        key = handler.path.rpartition("/")[2]
        return handler.answer(200, encode(change(decode(key, handler.kept))))

    return fault


def redirect(url: str) -> Fault:
    """To elsewhere."""
    return lambda handler: handler.answer(301, Location=url + handler.path)


ESCAPING = forge(lambda result: Result(result.key, {"../../escaped": (hashlib.sha256(b"").hexdigest(), 0)}))
ABSURD = forge(lambda result: Result(result.key, {name: (sha, 1 << 60) for name, (sha, _) in result.files.items()}))
HUGE = forge(lambda result: Result(result.key, {name: (sha, 1 << 49) for name, (sha, _) in result.files.items()}))
UNWRITABLE = forge(lambda result: Result(result.key, {name * 300: blob for name, blob in result.files.items()}))
CLASHING = forge(
    lambda result: Result(result.key, {name: blob for blob in result.files.values() for name in ("a", "a/b")})
)
