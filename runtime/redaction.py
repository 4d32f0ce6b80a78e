"""Hides passwords in printed settings, command lines and URLs."""

from __future__ import annotations

import re

HIDDEN = "*****"

# Spark's spark.redaction.regex, and words of other systems' settings.
_SECRET_NAME = re.compile(
    r"secret|password|passwd|token|credential|access[._-]?key|api[._-]?key|private[._-]?key",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(?<=://)([^/?#@\s:]*):([^/?#\s]*)@")
_PARAMETER = re.compile(r"([?&;]\s*([\w.-]+)=)([^&;#\s]*)")


def is_secret(name: str) -> bool:
    """Whether the value of a setting, option or parameter should not be printed, by its name.

    >>> is_secret("spark.hadoop.fs.s3a.access.key"), is_secret("spark.executor.cores")
    (True, False)
    """
    return _SECRET_NAME.search(name) is not None


def redacted_url(text: str) -> str:
    """A text without the passwords of the URLs in it.

    >>> redacted_url("jdbc:postgresql://ada:pass@host/db?user=ada&password=x&ssl=true")
    'jdbc:postgresql://ada:*****@host/db?user=ada&password=*****&ssl=true'
    """
    text = _USER_INFO.sub(rf"\1:{HIDDEN}@", text)
    return _PARAMETER.sub(
        lambda found: f"{found[1]}{HIDDEN}" if is_secret(found[2]) else found[0], text
    )


def redacted_setting(text: str) -> str:
    """`KEY=VALUE`, without the value where the key says that it is a secret.

    >>> redacted_setting("spark.ssl.keyPassword=x"), redacted_setting("spark.url=s3://a:b@c")
    ('spark.ssl.keyPassword=*****', 'spark.url=s3://a:*****@c')
    """
    key, equals, _ = text.partition("=")
    return f"{key}={HIDDEN}" if equals and is_secret(key) else redacted_url(text)
