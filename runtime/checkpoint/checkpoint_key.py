"""The key that signs checkpoints, so that a foreign or altered one is refused before it is unpickled.

State, positions of operators and prepared commits are pickles. A writer of such files can run code in the job that
restores them. With a key (`execution.checkpointing.key-file`), the metadata has a signature over all its fields, and
contains a signature of each file instead of a plain checksum. Signatures are keyed BLAKE2b, a message authentication
code: the same key signs and verifies. So the tasks get the key, too.

A signature proves that a run with this key wrote the checkpoint. It does not prove that the checkpoint is the latest
one: anyone who can write to the directory can put back an earlier checkpoint of the same job.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from opchain.runtime.errors import CheckpointError

SETTING = "execution.checkpointing.key-file"

RUNS_PICKLES = (
    "{} is not signed: restoring a checkpoint unpickles its state, and a pickle can run code of the "
    "checkpoint's author. Restore only checkpoints of your own jobs, or sign them (" + SETTING + ")"
)
"""The warning of commands and logs if a checkpoint of another directory is used without a key."""

FEWEST_BYTES = 16
"""A shorter key can be guessed."""


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """A key. Its repr shows only the identity."""

    secret: bytes = field(repr=False)
    identity: str
    """A fingerprint that identifies the key in messages without revealing it."""

    @classmethod
    def of(cls, content: bytes) -> CheckpointKey:
        """The key whose file has this content, without white space around it."""
        secret = hashlib.blake2b(content.strip(), digest_size=32, person=b"opchain key").digest()
        identity = hashlib.blake2b(secret, digest_size=4, person=b"opchain key id")
        return cls(secret, identity.hexdigest())

    def signature(self, data: bytes, purpose: str) -> str:
        """The signature of some bytes. It differs for each purpose."""
        person = f"opchain {purpose}".encode("ascii")
        return hashlib.blake2b(data, digest_size=32, key=self.secret, person=person).hexdigest()


class CheckpointKeyError(CheckpointError):
    """A checkpoint is not signed by the configured key, or no key is configured. The checkpoint is not damaged.

    What to do: Set `execution.checkpointing.key-file` to the key that signed the checkpoint.
    """


def read_key(path: str) -> CheckpointKey:
    """Reads the key from a file.

    Raises:
        CheckpointKeyError: The file cannot be read, or is too short for a key.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CheckpointKeyError(
            f"the key file {path} ({SETTING}) cannot be read: {error.strerror or error}. {_HOW}"
        ) from error
    if len(content.strip()) < FEWEST_BYTES:
        raise CheckpointKeyError(
            f"the key file {path} ({SETTING}) holds {len(content.strip())} bytes, but a key "
            f"needs at least "
            f"{FEWEST_BYTES}. {_HOW}"
        )
    return CheckpointKey.of(content)


_HOW = "Make a key with: (umask 077; openssl rand -hex 32 > KEY-FILE)"
