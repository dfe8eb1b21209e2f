"""Who acts through the console, and from where: what the audit says."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.http import HttpRequest

from jobs import operator


def person(request: HttpRequest) -> Any:
    """The request's user, whose commands are recorded as given through the console. The address is the web server's
    word: behind a proxy it is the proxy's, unless the server is told to trust it."""
    address: str | None = request.META.get("REMOTE_ADDR", "")
    try:
        ipaddress.ip_address(address or "")
    except ValueError:
        address = None
    return operator.through(request.user, "console", address)
