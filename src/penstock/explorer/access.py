"""Who may ask: those with the token, by this machine's names, from the explorer's own pages; and what browsers may do.

A browser shows the token once, in the first address. Then it is in a cookie, which only pages of this server's send
along (SameSite=Strict). Cookies know no ports, so the name of this one has the port in it; pages of other servers on
this machine are of the same site, which is why `Sec-Fetch-Site` and `Origin` are looked at too.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"
_METHODS = ("GET", "HEAD")
_OWN_SITE = ("same-origin", "none")  # `none` is an address that was typed, or a bookmark
_LOCAL_NAMES = ("localhost", "localhost.localdomain")
_DAY = 24 * 60 * 60
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """What a request must have: the token, and a name of the server that its address says."""

    token: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 0

    @property
    def cookie_name(self) -> str:
        """The cookie of this server, and of no other one on the machine."""
        return f"penstock_{self.port}"

    @property
    def cookie(self) -> str:
        """What the cookie holds: not the token, which would let its reader in for as long as the server runs."""
        return hmac.new(self.token.encode(), f"cookie {self.port}".encode(), hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        """Whether a text is the token; the time to tell does not depend on how much of it is right."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def is_known(self, request: Request) -> bool:
        """Whether a request carries the cookie."""
        given = request.cookies.get(self.cookie_name, "")
        return hmac.compare_digest(given.encode(), self.cookie.encode())

    def is_own_name(self, host: str) -> bool:
        """Whether a Host header names this machine by its number or by a name that is its own.

        A page of another site that lets its own name point here (DNS rebinding) says that name.
        """
        name = _name_of(host)
        if name is None:
            return False
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return (
                name in _LOCAL_NAMES
                or name == self.host.lower()
                or (not self.is_local and name == socket.gethostname().lower())
            )
        return address.is_loopback or not self.is_local

    @property
    def is_local(self) -> bool:
        """Whether only this machine can ask."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() in _LOCAL_NAMES


class AccessGuard:
    """Lets through what `Access` allows, and puts on every answer what browsers may do with it."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # a web socket is closed by who serves

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                added = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *((name, v) for name, v in added if name not in given)]
            await send(message)

        refusal = self._refusal(Request(scope))
        await (self._app if refusal is None else refusal)(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._access.is_own_name(hosts[0]):
            return _refused(421, "This server is not known by that name. Use the address that it printed.")
        if request.method not in _METHODS:
            return _refused(405, "The explorer only shows: there is nothing to send to it.", Allow=", ".join(_METHODS))
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "none") not in _OWN_SITE or (
            origin is not None and _place_of(origin) != hosts[0].lower()
        ):
            return _refused(403, "Another site asked for this page. Put its address into the address bar yourself.")
        given = request.query_params.get(TOKEN)
        if given is not None:
            return self._let_in(request, given)
        if not self._access.is_known(request):
            return _refused(401, "Open the address that `penstock explore` printed: it has a token, which is missing.")
        return None

    def _let_in(self, request: Request, given: str) -> Response:
        if not self._access.is_token(given):
            return _refused(401, "The token in this address is not this server's. Open the address that it printed.")
        path = "/" + request.scope["raw_path"].decode("ascii").lstrip("/\\")  # `//other` would be another server
        rest = [(name, value) for name, value in _parameters(request) if name != TOKEN]
        response = RedirectResponse(path + (f"?{urlencode(rest)}" if rest else ""), status_code=303)
        response.set_cookie(
            self._access.cookie_name, self._access.cookie, max_age=_DAY, httponly=True, samesite="strict"
        )
        return response


def _parameters(request: Request) -> list[tuple[str, str]]:
    return parse_qsl(request.url.query, keep_blank_values=True)


def _refused(status: int, reason: str, **headers: str) -> Response:
    return PlainTextResponse(reason + "\n", status_code=status, headers=headers)


def _place_of(origin: str) -> str | None:
    """The host and port of an Origin header; None of what is no such header."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _name_of(host: str) -> str | None:
    """The name in a Host header, without the port; None of what is no such header."""
    try:
        found = urlsplit(f"//{host}")
        found.port  # noqa: B018 - raises where it is no number
    except ValueError:
        return None
    if found.netloc != host or "@" in host or found.hostname is None:
        return None
    return found.hostname.lower()
