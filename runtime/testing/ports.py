"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket
from itertools import islice

_HOST = "127.0.0.1"

PORTS = range(15_000, 32_000)
"""Below the ephemeral ports, from which systems choose the ports of clients. So no client takes the port of a stopped server."""


def free_ports(count: int) -> list[int]:
    """Different ports that no process uses now."""
    free = (port for port in random.sample(PORTS, len(PORTS)) if _can_bind(port))
    return list(islice(free, count))


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
        return True
