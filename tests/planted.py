"""Pickles that create a folder when they are read, to test that nothing unpickles them."""

from __future__ import annotations

import base64
import os
import pickle
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Payload:
    """An object whose pickle makes a folder when it is read."""

    def __init__(self, witness: Path) -> None:
        self._witness = str(witness)

    def __reduce__(self) -> Any:
        return os.mkdir, (self._witness,)


def planted_pickle(witness: Path) -> bytes:
    """A pickle that makes the folder `witness`."""
    return pickle.dumps(Payload(witness))


def planted_token(witness: Path) -> str:
    """The body of an error token that makes the folder, without a valid signature."""
    return base64.b64encode(zlib.compress(planted_pickle(witness))).decode("ascii")


def planted_texts(witness: Path) -> list[str]:
    """Texts that look like an error of a task: unsigned, with a made-up signature, and signed by another job."""
    from opchain.runtime.spark.remote_error import ErrorSeal  # noqa: PLC0415 - few tests need it

    body = planted_token(witness)
    foreign = str(ErrorSeal().sealed(ValueError("of another job")))
    return [
        f"<opchain error {body}>",
        f"<opchain error {'0' * 64} {body}>",
        foreign,
        f"{foreign.rpartition(' ')[0]} {body}>",
    ]
