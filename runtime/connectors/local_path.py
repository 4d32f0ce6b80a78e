"""Paths of files on the machine's own disks."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from opchain.runtime.errors import UnsupportedFeatureError


def local_path(path: str | os.PathLike[str]) -> str:
    """An absolute path, since executors may work in another folder; `file:` URLs are paths too.

    Raises:
        TypeError: It is no path.
        UnsupportedFeatureError: It is on another file system.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"the path {text!r} is bytes; it must be a str or a Path")
    parts = urlsplit(text)
    if parts.scheme == "file":
        text = unquote(parts.path)
    elif "://" in text:
        raise UnsupportedFeatureError(
            f"files are read and written on local paths; '{text}' is on '{parts.scheme}', which this "
            "connector does not know"
        )
    return os.path.abspath(text)  # noqa: PTH100 - str paths throughout: they travel to executors
