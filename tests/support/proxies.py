"""A server behind a connection that breaks at the worst moment."""

from __future__ import annotations

import re
import selectors
import socket
import threading
from typing import Literal

Moment = Literal["before", "after", "for good"]
# The statement, at the end of a message of PostgreSQL or MySQL; READ COMMITTED is another.
_COMMIT = re.compile(rb"COMMIT(\x00|$)")


class BreakingProxy:
    """A port that leads to a server's socket.

    After `breaks`, the next COMMIT breaks the connection: `before` the server hears of it, or `after` it has answered;
    `for good` likewise, and no other connection can be had.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._moment: Moment | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def breaks(self, moment: Moment) -> None:
        self._moment = moment

    def close(self) -> None:
        if self._listener.fileno() != -1:
            # Closing alone would leave the thread that waits for the next connection, and the port with it.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._path)
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        # Not `select`, which takes no numbers of sockets over 1023: a process that has run thousands of tests has more.
        with client, server, selectors.DefaultSelector() as waiting:
            for one in (client, server):
                waiting.register(one, selectors.EVENT_READ)
            while True:
                for key, _ in waiting.select():
                    sender = client if key.fileobj is client else server
                    data = sender.recv(1 << 16)
                    if not data or (sender is client and self._is_the_end(data, server)):
                        return
                    (server if sender is client else client).sendall(data)

    def _is_the_end(self, data: bytes, server: socket.socket) -> bool:
        if self._moment is None or not _COMMIT.search(data):
            return False
        moment, self._moment = self._moment, None
        if moment != "before":
            server.sendall(data)
            server.recv(1 << 16)
        if moment == "for good":
            self.close()
        return True
