"""A web server for the files of a folder, with ranges, which counts what it is asked and can be told to misbehave."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_RANGE = re.compile(r"bytes=(\d+)-(\d*)$")


@dataclass(frozen=True)
class Request:
    """A request as it came: its path is not decoded."""

    method: str
    path: str
    range: str | None


@dataclass
class WebServer:
    """Files of a folder at `url`; what was asked is in `requests`."""

    folder: Path
    requests: list[Request] = field(default_factory=list)
    knows_ranges: bool = True
    knows_head: bool = True
    tells_sizes: bool = True  # else all of a file comes in chunks
    shifted: int = 0  # by how many bytes ranges begin too late
    failures: list[int] = field(default_factory=list)  # statuses of the next answers
    refuses_after: int | None = None  # how many answers; then all are 403
    cut_short: int = 0  # how many of the next answers end in the middle
    redirects: dict[str, str] = field(default_factory=dict)  # from a path to an address
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, method: str | None = None, ending: str = "") -> list[Request]:
        """The requests of a method for paths with an ending."""
        return [asked for asked in self.requests if method in (None, asked.method) and asked.path.endswith(ending)]


@contextmanager
def web_server(folder: Path) -> Iterator[WebServer]:
    """A server of a folder's files, as long as the block runs."""
    served = WebServer(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served}))
    server.daemon_threads = True
    served.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: WebServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def _answer(self, with_content: bool) -> None:
        served = self.served
        served.requests.append(Request(self.command, self.path, self.headers.get("Range")))
        path = urlsplit(self.path).path
        if path in served.redirects:
            self._send(302, b"", {"Location": served.redirects[path]})
        elif served.refuses_after is not None and len(served.requests) > served.refuses_after:
            self._send(403, b"", {})
        elif served.failures:
            self._send(served.failures.pop(0), b"told to fail", {})
        elif not with_content and not served.knows_head:
            self._send(405, b"", {})
        else:
            self._send_file(served.folder / unquote(path).lstrip("/"), with_content)

    def _send_file(self, file: Path, with_content: bool) -> None:
        if not file.is_file():
            self._send(404, b"<html>not here</html>" if with_content else b"", {})
            return
        if not self.served.tells_sizes:
            self._send_chunks(file, with_content)
            return
        size = file.stat().st_size
        wanted = _RANGE.match(self.headers.get("Range") or "") if self.served.knows_ranges else None
        start, end = (int(wanted[1]), min(int(wanted[2] or size), size - 1)) if wanted else (0, size - 1)
        headers = {"Accept-Ranges": "bytes"} if self.served.knows_ranges else {}
        if wanted and start >= size:
            self._send(416, b"", {"Content-Range": f"bytes */{size}"})
            return
        start += self.served.shifted if wanted else 0
        end += self.served.shifted if wanted else 0
        if wanted:
            headers["Content-Range"] = f"bytes {start}-{end}/{size}"
        self.send_response(206 if wanted else 200)
        for name, value in {**headers, "Content-Length": str(end - start + 1)}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_content:
            self._write(file, start, end - start + 1)

    def _send_chunks(self, file: Path, with_content: bool) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if with_content:
            content = file.read_bytes()
            parts = [content[i : i + 50_000] for i in range(0, len(content), 50_000)]
            self.wfile.write(b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""]))

    def _write(self, file: Path, start: int, count: int) -> None:
        if self.served.cut_short:
            self.served.cut_short -= 1
            count //= 2
            self.close_connection = True
        with file.open("rb") as content:
            content.seek(start)
            while count > 0:
                part = content.read(min(count, 1 << 20))
                self.wfile.write(part)
                count -= len(part)

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
