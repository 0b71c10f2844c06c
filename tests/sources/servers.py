"""A web server on this machine that a test scripts, request by request."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclasses.dataclass
class Server:
    """`answer` gets the handler of each GET; `asked` keeps the paths and the Range of each."""

    url: str
    asked: list[tuple[str, str | None]]


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[Server]:
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Range")))
            with contextlib.suppress(OSError):  # the client may have had enough
                answer(self)

        def log_message(self, *_: object) -> None:
            """Tests say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_port}", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(request: BaseHTTPRequestHandler, code: int, body: bytes, **headers: str) -> None:
    """A whole answer; `Content_Length` and the like may be given."""
    headers.setdefault("Content_Length", str(len(body)))
    request.send_response(code)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)
