"""Options of JDBC connectors. Flink: JdbcConnectionOptions, JdbcExecutionOptions."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from opchain.runtime.connectors.jdbc.mysql import is_mysql, mysql_parameters
from opchain.runtime.errors import UnsupportedFeatureError, require_at_least, short_repr
from opchain.runtime.redaction import redacted_url

if TYPE_CHECKING:
    from typing_extensions import Self


_LOG = logging.getLogger("opchain.job")

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
"""Parameters of the Java driver, and their names in libpq."""

_WITHOUT_EFFECT = frozenset(
    {"reWriteBatchedInserts", "prepareThreshold", "stringtype", "tcpKeepAlive", "loggerLevel"}
)
"""Parameters of the Java driver that have no effect here."""


def connection_parameters(options: JdbcConnectionOptions) -> dict[str, str]:
    """The arguments of `psycopg.connect`. A URL in libpq's own form becomes its `conninfo`.

    Raises:
        ValueError: The URL is missing or malformed, or has an unknown parameter.
        UnsupportedFeatureError: The URL is for another database.
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
        # Only the scheme is shown: the rest of the URL may contain a password.
        kind = re.match(r"(jdbc:)?[A-Za-z0-9+]*", url)
        raise UnsupportedFeatureError(
            f"JDBC sources support PostgreSQL, and JdbcSink PostgreSQL, MySQL and MariaDB, but the URL begins with "
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
    if "@" in text:  # not shown: it may contain a password
        raise ValueError(
            "the URL of JdbcConnectionOptions has a user before the host: call with_user_name() and with_password() "
            "instead"
        )
    if found is None:
        raise ValueError(f"the URL of JdbcConnectionOptions has {text!r}, which is not host:port")
    return found["host"].strip("[]") or "localhost", found["port"] or "5432"


_DRIVERS = (
    "org.postgresql.Driver",
    "com.mysql.cj.jdbc.Driver",
    "com.mysql.jdbc.Driver",
    "org.mariadb.jdbc.Driver",
)


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """The database of a JDBC connector; see `JdbcConnectionOptionsBuilder`. Passwords are never shown."""

    url: str
    driver_name: str | None = None
    user_name: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        shown = f"url={redacted_url(str(self.url))!r}, driver_name={self.driver_name!r}"
        return f"{type(self).__name__}({shown}, user_name={self.user_name!r})"

    def get_db_url(self) -> str:
        """The URL that was set."""
        return self.url

    def get_driver_name(self) -> str | None:
        """The class of the Java driver. It is not used."""
        return self.driver_name

    def get_user_name(self) -> str | None:
        """The user. None if the URL or the environment sets it."""
        return self.user_name

    def get_password(self) -> str | None:
        """The password."""
        return self.password

    class JdbcConnectionOptionsBuilder:
        """Builds JdbcConnectionOptions."""

        def __init__(self) -> None:
            self._options = JdbcConnectionOptions("")

        def with_url(self, url: str) -> Self:
            """Sets the URL: `jdbc:postgresql://host:5432/database`, libpq's `postgresql://...`, or `jdbc:mysql://...`."""
            self._options = replace(self._options, url=url)
            return self

        def with_driver_name(self, driver_name: str) -> Self:
            """Accepts the class of a Java driver, for PyFlink programs. It is not used.

            Raises:
                UnsupportedFeatureError: The driver is for another database.
            """
            if driver_name not in _DRIVERS:
                raise UnsupportedFeatureError(
                    f"with_driver_name({driver_name!r}): JdbcSink supports only PostgreSQL, MySQL and MariaDB; "
                    f"remove the driver, or set one of {', '.join(_DRIVERS)}"
                )
            self._options = replace(self._options, driver_name=driver_name)
            return self

        def with_user_name(self, user_name: str) -> Self:
            """Sets the user."""
            self._options = replace(self._options, user_name=user_name)
            return self

        def with_password(self, password: str) -> Self:
            """Sets the password."""
            self._options = replace(self._options, password=password)
            return self

        def build(self) -> JdbcConnectionOptions:
            """Returns the options.

            Raises:
                ValueError: The URL is missing or malformed, or has an unknown parameter.
                UnsupportedFeatureError: The URL is for another database.
            """
            if is_mysql(self._options.url):
                mysql_parameters(self._options)
            else:
                connection_parameters(self._options)
            return self._options


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """Batch size and retries of a JdbcSink. Created by `builder()`."""

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def get_batch_interval_ms(self) -> int:
        """The value that was set. It has no effect; see `with_batch_interval_ms`."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """The number of records per batch."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """The maximum number of retries after a lost connection."""
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Batches of 5000 records, and 3 retries."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Returns a builder."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Builds JdbcExecutionOptions."""

        def __init__(self) -> None:
            self._options = JdbcExecutionOptions()

        def with_batch_size(self, size: int) -> Self:
            """Sets the number of records per batch; at least 1."""
            require_at_least(1, size, "with_batch_size")
            self._options = replace(self._options, batch_size=size)
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> Self:
            """Has no effect and logs a warning: rows become visible when the checkpoint or the job is complete."""
            require_at_least(0, interval_ms, "with_batch_interval_ms")
            _LOG.warning(
                "JdbcExecutionOptions.with_batch_interval_ms(%d) has no effect: rows become visible when the "
                "checkpoint or the job is complete",
                interval_ms,
            )
            self._options = replace(self._options, batch_interval_ms=interval_ms)
            return self

        def with_max_retries(self, max_retries: int) -> Self:
            """Sets the maximum number of retries after a lost connection. 0 disables retries."""
            require_at_least(0, max_retries, "with_max_retries")
            self._options = replace(self._options, max_retries=max_retries)
            return self

        def build(self) -> JdbcExecutionOptions:
            """Returns the options."""
            return self._options
