"""A PostgreSQL server of the tests' own, where Debian's packages (or others) have installed the programs."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain.datastream.connectors.jdbc import JdbcConnectionOptions
from opchain.runtime.testing.kafka_broker import run_at_the_end
from opchain.runtime.testing.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

USER = "postgres"
_STARTS = 3


@dataclass(frozen=True)
class Server:
    """Who runs; everybody on this machine may connect."""

    port: int

    @property
    def url(self) -> str:
        """As PyFlink's programs have it."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{USER}"

    @property
    def options(self) -> JdbcConnectionOptions:
        builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        return builder.with_url(self.url).with_user_name(USER).build()

    def connect(self) -> Any:
        import psycopg  # noqa: PLC0415 - it may be missing

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, dbname=USER, autocommit=True
        )

    def run(self, *commands: str) -> None:
        with self.connect() as connection:
            for command in commands:
                connection.execute(command)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
            return found

    def waiting(self) -> int:
        """How many rows and batches wait for a commit in any table."""
        tables = self.rows(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'opchain\\_%' "
            "AND relname <> 'opchain_commits'"
        )
        return sum(self.rows(f"SELECT count(*) FROM {name}")[0][0] for (name,) in tables)

    def clear(self) -> None:
        """Drops all tables."""
        self.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A server on a free port, with its data in a temporary folder; skips the test where there is none."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'opchain[postgresql]'")
    programs = _programs()
    if programs is None:
        pytest.skip("needs PostgreSQL's server: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="opchain-postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        account = pwd.getpwnam(USER)
        os.chown(folder, account.pw_uid, account.pw_gid)
        as_user = ["runuser", "-u", USER, "--"]
    data = str(folder / "data")

    def call(command: Sequence[str]) -> None:
        done = subprocess.run(
            [*as_user, *command], cwd="/", capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"

    stop = 'folder=$1; shift; "$@"; rm -rf "$folder"'
    pg_ctl = [*as_user, f"{programs}/pg_ctl", "-D", data, "-m", "immediate", "stop"]
    with run_at_the_end("/bin/sh", "-c", stop, "stop", str(folder), *pg_ctl):
        call([f"{programs}/initdb", "-D", data, "-A", "trust", "-U", USER, "-N"])
        log = str(folder / "log")
        for attempt in range(_STARTS):
            [port] = free_ports(1)
            settings = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
            try:
                call([f"{programs}/pg_ctl", "-D", data, "-w", "-l", log, "-o", settings, "start"])
            except AssertionError:  # perhaps somebody has taken the port meanwhile
                if attempt == _STARTS - 1:
                    raise
            else:
                break
        yield Server(port)


def _programs() -> Path | None:
    found = shutil.which("pg_ctl")
    if found is not None:
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return installed[-1].parent if installed else None
