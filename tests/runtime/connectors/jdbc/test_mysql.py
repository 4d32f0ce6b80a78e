"""JdbcSink against a MariaDB server that the tests start, if Debian's packages are installed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Row, Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from opchain.runtime.connectors.commit_sink import SinkEpoch
from opchain.runtime.errors import SinkError
from opchain.runtime.testing.kafka_broker import run_at_the_end
from opchain.runtime.testing.ports import free_ports
from opchain.table import StreamTableEnvironment
from opchain.testing import SinkConformance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAIR = Types.ROW([Types.INT(), Types.STRING()])


@dataclass(frozen=True)
class MariaDb:
    """A running server; everybody on this machine may connect."""

    port: int

    @property
    def url(self) -> str:
        return f"jdbc:mysql://127.0.0.1:{self.port}/test?useSSL=false"

    @property
    def options(self) -> JdbcConnectionOptions:
        builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        builder.with_driver_name("com.mysql.cj.jdbc.Driver")
        return builder.with_url(self.url).with_user_name("root").build()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        library = pytest.importorskip("pymysql", reason="needs pip install 'opchain[mysql]'")
        connection = library.connect(
            host="127.0.0.1", port=self.port, user="root", database="test", autocommit=True
        )
        with closing(connection), connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def sink(self, sql: str, kind: Any = PAIR, batch_size: int = 1000) -> JdbcSink:
        execution = JdbcExecutionOptions.builder().with_batch_size(batch_size).build()
        return JdbcSink.sink(sql, kind, self.options, execution)


@contextmanager
def mariadb_server(folder: Path) -> Iterator[MariaDb]:
    library = pytest.importorskip("pymysql", reason="needs pip install 'opchain[mysql]'")
    install, program = shutil.which("mariadb-install-db"), shutil.which("mariadbd")
    program = program or shutil.which("mariadbd", path="/usr/sbin")
    if install is None or program is None:
        pytest.skip("needs MariaDB's server: apt-get install mariadb-server")
    done = subprocess.run(
        [
            *(install, "--no-defaults", "--skip-test-db", "--user=root"),
            *(f"--datadir={folder}/data", "--auth-root-authentication-method=normal"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    server = MariaDb(*free_ports(1))
    process = subprocess.Popen(
        [
            *(program, "--no-defaults", "--user=root", f"--datadir={folder}/data"),
            *(f"--socket={folder}/s", "--bind-address=127.0.0.1", f"--port={server.port}"),
            *("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with run_at_the_end("kill", "-9", str(process.pid)):
        until = time.monotonic() + 120
        while True:
            try:
                connection = library.connect(host="127.0.0.1", port=server.port, user="root")
                break
            except library.MySQLError:
                assert time.monotonic() < until, "MariaDB does not answer"
                assert process.poll() is None
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE test")
        yield server
    process.wait(60)


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    with mariadb_server(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.mark.slow
class TestConformance(SinkConformance):
    """Each target is a table; all share the table of commit notes."""

    most_failures = 8
    server: MariaDb

    @pytest.fixture(autouse=True)
    def _server(self, mariadb: MariaDb) -> None:
        type(self).server = mariadb

    def make_sink(self, target: Path) -> Any:
        table = table_of(target)
        if not target.exists():
            target.mkdir()
            self.server.rows("DROP TABLE IF EXISTS opchain_sinks")
            self.server.rows(f"DROP TABLE IF EXISTS {table}")
            self.server.rows(f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
        sink = self.server.sink(f"INSERT INTO {table} (v) VALUES (?)", Types.ROW([Types.STRING()]))
        return OneField(sink.two_phase)

    def visible(self, target: Path) -> list[str]:
        return [row[0] for row in self.server.rows(f"SELECT v FROM {table_of(target)} ORDER BY id")]


def table_of(target: Path) -> str:
    return f"t_{target.name}".replace("-", "_")


def OneField(sink: Any) -> Any:  # noqa: N802 - it makes a sink of texts
    """The sink tests write texts; the statement takes rows."""
    stage = type(sink).stage
    kind = type(
        "TextSink",
        (type(sink),),
        {"stage": lambda self, owner, records: stage(self, owner, [(text,) for text in records])},
    )
    sink.__class__ = kind
    return sink


def test_the_last_record_of_a_key_is_kept(
    mariadb: MariaDb, env: StreamExecutionEnvironment
) -> None:
    mariadb.rows("CREATE TABLE books (id INT PRIMARY KEY, title TEXT)")
    sink = mariadb.sink(
        "INSERT INTO books VALUES (?, ?) ON DUPLICATE KEY UPDATE title = VALUES(title)",
        batch_size=3,
    )
    titles = [(number % 4, f"100% of {number} ?") for number in range(10)]
    env.set_parallelism(1)
    env.from_collection(titles, PAIR).add_sink(sink)
    env.execute()
    assert mariadb.rows("SELECT * FROM books ORDER BY id") == [
        (0, "100% of 8 ?"),
        (1, "100% of 9 ?"),
        (2, "100% of 6 ?"),
        (3, "100% of 7 ?"),
    ]


def test_the_update_of_an_upsert_may_have_parameters(
    mariadb: MariaDb, env: StreamExecutionEnvironment
) -> None:
    mariadb.rows("CREATE TABLE visits (id INT PRIMARY KEY, n INT)")
    sink = mariadb.sink(
        "INSERT INTO visits VALUES (?, ?) ON DUPLICATE KEY UPDATE n = n + ? % 10",
        Types.ROW([Types.INT()] * 3),
    )
    env.set_parallelism(1)
    env.from_collection([(1, 5, 5), (1, 6, 16), (2, 7, 7)]).add_sink(sink)
    env.execute()
    assert mariadb.rows("SELECT * FROM visits ORDER BY id") == [(1, 11), (2, 7)]


@pytest.mark.parametrize(
    ("changed", "is_refused", "expected"),
    [
        ("INSERT INTO changed (b, a) VALUES (?, ?)", False, [(1, "2")]),
        ("DELETE FROM changed WHERE a = ?", False, [(1, "2")]),
        ("INSERT IGNORE INTO changed VALUES (?, ?)", True, [(1, "first")]),
    ],
)
def test_records_are_written_by_the_statement_of_the_program_that_staged_them(
    mariadb: MariaDb, changed: str, is_refused: bool, expected: list[Any]
) -> None:
    mariadb.rows("CREATE OR REPLACE TABLE changed (a INT PRIMARY KEY, b TEXT)")
    old = mariadb.sink("INSERT INTO changed VALUES (?, ?)").two_phase
    new = mariadb.sink(changed, Types.ROW([Types.INT()] * changed.count("?"))).two_phase
    epoch = SinkEpoch(f"job.{changed}", 1, "'out'")
    staged = [old.stage("job.out", [(1, "2")])]  # type: ignore[attr-defined]
    if is_refused:
        mariadb.rows("INSERT INTO changed VALUES (1, 'first')")
        with pytest.raises(SinkError, match="Duplicate entry"):
            old.commit(epoch, staged)  # type: ignore[attr-defined]
    for _ in range(2):
        new.commit(epoch, staged)  # type: ignore[attr-defined]
    assert mariadb.rows("SELECT * FROM changed") == expected


def test_percent_signs_and_quotes_of_the_statement_are_kept(
    mariadb: MariaDb, env: StreamExecutionEnvironment
) -> None:
    mariadb.rows("CREATE TABLE signs (`a?` INT, b TEXT)")
    sink = mariadb.sink(r"REPLACE INTO signs (`a?`, b) VALUES (?, CONCAT('10% \'?', ?))")
    env.from_collection([(1, "x")], PAIR).add_sink(sink)
    env.execute()
    assert mariadb.rows("SELECT * FROM signs") == [(1, "10% '?x")]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("CREATE TABLE {} (a INT)", r"Column count doesn't match"),
        ("CREATE TABLE {} (a INT, b VARCHAR(1)) ENGINE=MyISAM", r"the engine MyISAM, which has no"),
        ("CREATE TABLE {} (a INT, b VARCHAR(1))", r"Data too long for column 'b'"),
    ],
)
def test_a_row_that_the_server_refuses_fails_the_job_and_changes_nothing(
    mariadb: MariaDb, env: StreamExecutionEnvironment, table: str, problem: str
) -> None:
    mariadb.rows("DROP TABLE IF EXISTS refused")
    mariadb.rows(table.format("refused"))
    sink = mariadb.sink("INSERT INTO refused VALUES (?, ?)")
    env.from_collection([(1, "x"), (2, "too long")], PAIR).add_sink(sink)
    with pytest.raises(Exception, match=problem):
        env.execute()
    assert mariadb.rows("SELECT * FROM refused") == []


@pytest.mark.parametrize(
    "failure", ["KILL CONNECTION_ID()", "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213"]
)
def test_a_lost_connection_or_a_deadlock_is_retried(
    mariadb: MariaDb, env: StreamExecutionEnvironment, failure: str
) -> None:
    for name, engine in [("tries", "MyISAM"), ("seen", "InnoDB")]:
        mariadb.rows(f"CREATE OR REPLACE TABLE {name} (id INT) ENGINE={engine}")
    mariadb.rows(f"""
        CREATE OR REPLACE PROCEDURE see(number INT) BEGIN
            INSERT INTO seen VALUES (number);
            INSERT INTO tries VALUES (number);
            IF (SELECT COUNT(*) FROM tries) = 2 THEN {failure}; END IF;
        END""")
    sink = mariadb.sink("CALL see(?)", Types.ROW([Types.INT()]))
    env.set_parallelism(1)
    env.from_collection([(1,), (2,)]).add_sink(sink)
    env.execute()
    assert mariadb.rows("SELECT * FROM seen ORDER BY id") == [(1,), (2,)]


def test_the_error_names_a_record_that_does_not_fit(mariadb: MariaDb) -> None:
    sink = mariadb.sink("INSERT INTO t VALUES (?, ?)").two_phase
    with pytest.raises(SinkError, match=r"got the record \(1,\); its statement takes .* 2 fields"):
        sink.stage("owner", [(1,)])  # type: ignore[attr-defined]
    with pytest.raises(SinkError, match=r"can't write the record \(1, '\\ud800'\): .* surrogates"):
        sink.stage("owner", [(1, "\ud800")])  # type: ignore[attr-defined]
    with pytest.raises(SinkError, match=r"can't write the record \(1, nan\): MySQL has no number"):
        sink.stage("owner", [(1, float("nan"))])  # type: ignore[attr-defined]
    for value in ({"a": 1}, [1, 2], Row(1, 2)):
        with pytest.raises(SinkError, match=r"can't write the record .*: a column of MySQL can't"):
            sink.stage("owner", [(1, value)])  # type: ignore[attr-defined]


def test_the_error_about_an_unreachable_server_does_not_show_the_password() -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"jdbc:mariadb://127.0.0.1:{held.getsockname()[1]}/db"
        options = builder.with_url(url).with_user_name("u").with_password("secret").build()
        execution = JdbcExecutionOptions.builder().with_max_retries(1).build()
        sink = JdbcSink.sink("INSERT INTO t VALUES (?, ?)", PAIR, options, execution).two_phase
        pytest.importorskip("pymysql", reason="needs pip install 'opchain[mysql]'")
        with pytest.raises(SinkError, match="Can't connect to MySQL server") as failed:
            sink.send("o.1.1.d", [(1, "x")])  # type: ignore[attr-defined]
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("jdbc:mysql://host:x/db?password=secret", "is not jdbc:mysql://host:port/database"),
        ("jdbc:mysql://host/db?sslMode=REQUIRED", "has the parameter 'sslMode'"),
    ],
)
def test_an_invalid_url_is_refused(url: str, problem: str) -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    with pytest.raises(ValueError, match=problem) as refused:
        builder.with_url(url).build()
    assert "secret" not in str(refused.value)


def test_a_sql_table_with_a_primary_key_updates_rows(
    mariadb: MariaDb, env: StreamExecutionEnvironment
) -> None:
    pytest.importorskip("sqlglot", reason="needs pip install 'opchain[sql]'")
    mariadb.rows("CREATE TABLE stock (id INT PRIMARY KEY, name VARCHAR(20))")
    mariadb.rows("INSERT INTO stock VALUES (1, 'old')")
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(f"""
        CREATE TABLE stock (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
          'connector' = 'jdbc', 'url' = '{mariadb.url}', 'username' = 'root',
          'table-name' = 'stock')
    """)
    tables.execute_sql("INSERT INTO stock VALUES (1, 'new'), (2, 'more')").wait()
    assert mariadb.rows("SELECT * FROM stock ORDER BY id") == [(1, "new"), (2, "more")]


def test_a_sql_table_may_have_reserved_words_as_names(
    mariadb: MariaDb, env: StreamExecutionEnvironment
) -> None:
    pytest.importorskip("sqlglot", reason="needs pip install 'opchain[sql]'")
    mariadb.rows("CREATE TABLE `order` (`key` INT PRIMARY KEY, `desc` VARCHAR(20))")
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(f"""
        CREATE TABLE orders (`key` INT, `desc` STRING, PRIMARY KEY (`key`) NOT ENFORCED) WITH (
          'connector' = 'jdbc', 'url' = '{mariadb.url}', 'username' = 'root',
          'table-name' = 'test.order')
    """)
    tables.execute_sql("INSERT INTO orders VALUES (1, 'new')").wait()
    assert mariadb.rows("SELECT * FROM `order`") == [(1, "new")]
