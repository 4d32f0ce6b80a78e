"""What libpq makes of the URL of a JDBC connection."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from opchain.runtime.errors import UnsupportedFeatureError, short_repr

if TYPE_CHECKING:
    from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions

_JDBC = re.compile(r"jdbc:postgresql:(//(?P<hosts>[^/?]*)/?)?(?P<database>[^?]*)(\?(?P<query>.*))?")
_HOST = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(:(?P<port>\d+))?")
_NATIVE = ("postgresql://", "postgres://")

_NAMES = {
    "user": "user",
    "password": "password",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "options": "options",
    "sslmode": "sslmode",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslpassword": "sslpassword",
    "sslrootcert": "sslrootcert",
}
"""Parameters of the Java driver, and what libpq calls them."""

_WITHOUT_EFFECT = frozenset(
    {"reWriteBatchedInserts", "prepareThreshold", "stringtype", "tcpKeepAlive", "loggerLevel"}
)
"""Parameters of the Java driver about things that are done otherwise here."""


def connection_parameters(options: JdbcConnectionOptions) -> dict[str, str]:
    """What `psycopg.connect` takes; the URL of libpq's own form is its `conninfo`.

    Raises:
        ValueError: The URL is missing, or has what is not understood.
        UnsupportedFeatureError: It is another database's.
    """
    url = options.url
    if not isinstance(url, str) or not url:
        raise ValueError(
            "JdbcConnectionOptions have no URL: call with_url('jdbc:postgresql://host/database')"
        )
    parameters = {"conninfo": url} if url.startswith(_NATIVE) else _of_jdbc(url)
    if options.user_name is not None:
        parameters["user"] = options.user_name
    if options.password is not None:
        parameters["password"] = options.password
    return parameters


def _of_jdbc(url: str) -> dict[str, str]:
    found = _JDBC.fullmatch(url)
    if found is None:
        # The rest of the URL may hold a password.
        kind = re.match(r"(jdbc:)?[A-Za-z0-9+]*", url)
        raise UnsupportedFeatureError(
            f"JdbcSink supports only PostgreSQL, but the URL begins with "
            f"{short_repr(kind.group() if kind else '')}: use jdbc:postgresql://host:port/database"
        )
    parameters = {}
    if found["hosts"]:
        hosts = [_host(text) for text in found["hosts"].split(",")]
        parameters["host"] = ",".join(host for host, _ in hosts)
        parameters["port"] = ",".join(port for _, port in hosts)
    if found["database"].strip("/"):
        parameters["dbname"] = unquote(found["database"].strip("/"))
    for name, value in parse_qsl(found["query"] or "", keep_blank_values=True):
        if name == "currentSchema":
            schemas = value.replace("\\", "\\\\").replace(" ", "\\ ")
            parameters["options"] = (
                f"{parameters.get('options', '')} -csearch_path={schemas}".strip()
            )
        elif name in _NAMES:
            parameters[_NAMES[name]] = value
        elif name not in _WITHOUT_EFFECT:
            known = ", ".join(sorted((*_NAMES, "currentSchema")))
            raise ValueError(
                f"the URL of JdbcConnectionOptions has the parameter {name!r}; it may have {known}"
            )
    return parameters


def _host(text: str) -> tuple[str, str]:
    found = _HOST.fullmatch(text)
    if found is None:
        raise ValueError(f"the URL of JdbcConnectionOptions has {text!r}, which is not host:port")
    return found["host"].strip("[]") or "localhost", found["port"] or "5432"
