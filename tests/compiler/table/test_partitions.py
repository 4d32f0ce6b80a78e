"""Partitioned tables in files. Their folders have the names that PyFlink 2.3 gives them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.table import Schema, StreamTableEnvironment, TableDescriptor

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = "id INT, dt STRING, name STRING, hr INT"


def environment(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    for key, value in settings.items():
        configuration.set_string(key, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.fixture
def tables() -> StreamTableEnvironment:
    return StreamTableEnvironment.create(environment())


def create(
    tables: StreamTableEnvironment,
    path: Path,
    columns: str = COLUMNS,
    keys: str = "dt, hr",
    options: str = "'format' = 'csv'",
) -> None:
    tables.execute_sql(
        f"CREATE TABLE t ({columns}) PARTITIONED BY ({keys}) "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', {options})"
    )


def written(path: Path) -> dict[str, str]:
    """The text of the files in each folder."""
    found: dict[str, str] = {}
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        folder = str(file.parent.relative_to(path))
        if not folder.startswith(".opchain"):
            found[folder] = found.get(folder, "") + file.read_text()
    return found


def rows(tables: StreamTableEnvironment, query: str = "SELECT * FROM t") -> list[Any]:
    return sorted((tuple(each) for each in tables.execute_sql(query).collect()), key=repr)


def test_partition_folders_have_the_values_of_the_partition_columns(
    tables: StreamTableEnvironment, tmp_path: Path
) -> None:
    create(tables, tmp_path / "t")
    odd = """a/b=c%d:e f*?"#^{}[]<>|~\\''ü"""
    tables.execute_sql(
        "INSERT INTO t VALUES (1, '2026-01-31', 'a', 5), (2, '2026-01-31', 'b', 6), "
        f"(3, CAST(NULL AS STRING), 'c', 5), (4, '', 'd', CAST(NULL AS INT)), (5, '{odd}', 'e', 1)"
    ).wait()
    assert written(tmp_path / "t") == {
        "dt=2026-01-31/hr=5": "1,a\n",
        "dt=2026-01-31/hr=6": "2,b\n",
        "dt=__DEFAULT_PARTITION__/hr=5": "3,c\n",
        "dt=__DEFAULT_PARTITION__/hr=__DEFAULT_PARTITION__": "4,d\n",
        "dt=a%2Fb%3Dc%25d%3Ae f%2A%3F%22%23%5E%7B%7D%5B%5D<>|~%5C%27ü/hr=1": "5,e\n",
    }
    assert rows(tables) == [
        (1, "2026-01-31", "a", 5),
        (2, "2026-01-31", "b", 6),
        (3, None, "c", 5),
        (4, None, "d", None),
        (5, odd.replace("''", "'"), "e", 1),
    ]
    assert rows(tables, "SELECT hr + 1, name FROM t WHERE dt = '2026-01-31'") == [
        (6, "a"),
        (7, "b"),
    ]


@pytest.mark.parametrize("of", ["csv", "json", "avro", "parquet"])
@pytest.mark.parametrize(
    "columns", ["dt STRING, id BIGINT, x DOUBLE", "id BIGINT, x DOUBLE, dt STRING"]
)
def test_files_of_all_formats_leave_partition_columns_out(
    tables: StreamTableEnvironment, tmp_path: Path, of: str, columns: str
) -> None:
    create(tables, tmp_path / "t", columns, "dt", f"'format' = '{of}'")
    tables.execute_sql(
        "INSERT INTO t (id, dt, x) VALUES (1, 'a', 0.5), (2, 'b', 1.5), (3, 'a', 2.5)"
    ).wait()
    assert {each.name for each in (tmp_path / "t").iterdir()} == {"dt=a", "dt=b"}
    assert rows(tables, "SELECT id, dt, x FROM t") == [(1, "a", 0.5), (2, "b", 1.5), (3, "a", 2.5)]
    tables.execute_sql(
        f"CREATE TABLE files (id BIGINT, x DOUBLE) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/t/dt=a', 'format' = '{of}')"
    )
    assert rows(tables, "SELECT * FROM files") == [(1, 0.5), (3, 2.5)]


def test_partition_values_of_all_types_are_read_back(
    tables: StreamTableEnvironment, tmp_path: Path
) -> None:
    types = {
        "d DATE": "DATE '2026-01-02'",
        "ts TIMESTAMP(3)": "TIMESTAMP '2026-01-02 03:04:05.120'",
        "z TIMESTAMP_LTZ(3)": "TO_TIMESTAMP_LTZ(1000, 3)",
        "b BOOLEAN": "TRUE",
        "f DOUBLE": "CAST(1.5 AS DOUBLE)",
        "n DECIMAL(10, 2)": "2.5",
        "l BIGINT": "12345678901",
        "t TIME": "TIME '01:02:03'",
    }
    keys = ", ".join(each.split()[0] for each in types)
    create(tables, tmp_path / "t", f"id INT, {', '.join(types)}", keys)
    tables.execute_sql(f"INSERT INTO t VALUES (1, {', '.join(types.values())})").wait()
    assert list(written(tmp_path / "t")) == [
        (
            "d=2026-01-02/ts=2026-01-02T03%3A04%3A05.120/z=1970-01-01T00%3A00%3A01/b=true/f=1.5/n=2.50/"
            "l=12345678901/t=01%3A02%3A03"
        )
    ]
    equal = " AND ".join(f"{column.split()[0]} = {value}" for column, value in types.items())
    assert rows(tables, f"SELECT id FROM t WHERE {equal}") == [(1,)]


def test_insert_into_a_partition_writes_only_to_its_folder(
    tables: StreamTableEnvironment, tmp_path: Path
) -> None:
    create(tables, tmp_path / "t")
    for statement in (
        "INSERT INTO t PARTITION (dt = '2026-05-05', hr = 7) SELECT 1, 'a'",
        "INSERT INTO t PARTITION (dt = '2026-05-06') SELECT 2, 'b', 9",
        "INSERT INTO t PARTITION (hr = 3) (name, id, dt) SELECT 'n', 10, 'dd'",
    ):
        tables.execute_sql(statement).wait()
    assert written(tmp_path / "t") == {
        "dt=2026-05-05/hr=7": "1,a\n",
        "dt=2026-05-06/hr=9": "2,b\n",
        "dt=dd/hr=3": "10,n\n",
    }
    with pytest.raises(GraphError, match=r"PARTITION \(name = ...\): .* not PARTITIONED BY 'name'"):
        tables.execute_sql("INSERT INTO t PARTITION (name = 'x') SELECT 1, 'a', 2")


def test_option_default_name_sets_the_folder_of_null(
    tables: StreamTableEnvironment, tmp_path: Path
) -> None:
    options = "'format' = 'json', 'partition.default-name' = 'none'"
    create(tables, tmp_path / "t", "id INT, dt STRING", "dt", options)
    tables.execute_sql("INSERT INTO t VALUES (1, CAST(NULL AS STRING)), (2, 'x')").wait()
    assert written(tmp_path / "t") == {"dt=none": '{"id":1}\n', "dt=x": '{"id":2}\n'}
    assert rows(tables) == [(1, None), (2, "x")]


@pytest.mark.parametrize("name", ["_SUCCESS", "_OK"])
def test_a_bounded_job_writes_a_success_file_into_its_partitions(
    tables: StreamTableEnvironment, tmp_path: Path, name: str
) -> None:
    policy = (
        "'format' = 'csv', 'sink.partition-commit.policy.kind' = 'success-file', "
        "'sink.partition-commit.trigger' = 'partition-time', 'sink.partition-commit.delay' = '1 h', "
        "'partition.time-extractor.timestamp-pattern' = '$dt'"
    )
    if name != "_SUCCESS":
        policy += f", 'sink.partition-commit.success-file.name' = '{name}'"
    create(tables, tmp_path / "t", "id INT, dt STRING", "dt", policy)
    tables.execute_sql("INSERT INTO t VALUES (1, 'x'), (2, 'y')").wait()
    marked = sorted(each.parent.name for each in (tmp_path / "t").rglob(name))
    assert marked == ["dt=x", "dt=y"]
    assert rows(tables) == [(1, "x"), (2, "y")]


class ReadRecords:
    """Tells when the committed epochs have read a number of records."""

    def __init__(self, records: int) -> None:
        self.left = records
        self.are_there = threading.Event()

    def __call__(self, progress: Any) -> None:
        self.left -= progress.records_in
        if self.left <= 0:
            self.are_there.set()


def test_each_checkpoint_writes_success_files_into_its_partitions(
    tmp_path: Path,
) -> None:
    source, sink = tmp_path / "source", tmp_path / "sink"
    source.mkdir()
    (source / "a.json").write_text('{"id": 1, "dt": "x"}\n{"id": 2, "dt": "y"}\n')
    env = environment(
        **{
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "execution.checkpointing.interval": "50 ms",
        }
    )
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(
        "CREATE TABLE s (id INT, dt STRING) WITH ('connector' = 'filesystem', 'format' = 'json', "
        f"'path' = '{source}', 'source.monitor-interval' = '10 ms')"
    )
    policy = "'sink.partition-commit.policy.kind' = 'success-file'"
    create(tables, sink, "id INT, dt STRING", "dt", f"'format' = 'json', {policy}")
    read = ReadRecords(2)
    env.add_epoch_listener(read)
    client = tables.execute_sql("INSERT INTO t SELECT * FROM s").get_job_client()
    assert client is not None
    assert read.are_there.wait(60)
    (source / "b.json").write_text('{"id": 3, "dt": "x"}\n{"id": 4, "dt": "z"}\n')
    client.stop_with_savepoint(False, str(tmp_path / "saved")).result(60)
    client.get_job_execution_result().result(60)
    marked = {each.parent.name for each in sink.rglob("_SUCCESS")}
    assert marked >= {"dt=x", "dt=y"}
    found = "".join(written(sink).values()).splitlines()
    assert sorted(found)[:2] == ['{"id":1}', '{"id":2}']
    assert len(found) == len(set(found)) == 2 + 2 * ("dt=z" in marked)


@pytest.mark.parametrize(
    ("columns", "keys", "options", "message"),
    [
        ("id INT", "dt", "", "PARTITIONED BY 'dt', which is none of its physical columns: id"),
        ("id INT, d AS id", "d", "", "PARTITIONED BY 'd', which is none of its physical columns"),
        ("id INT", "id", "", "PARTITIONED BY all of its columns"),
        ("id INT, a ARRAY<INT>", "a", "", "PARTITIONED BY 'a', which is ARRAY<INT>"),
        (
            "id INT, dt INT",
            "dt",
            ", 'sink.partition-commit.policy.kind' = 'success-file,metastore'",
            "the policy 'metastore' .* is not supported for files; use success-file",
        ),
    ],
)
def test_invalid_partition_columns_and_options_are_refused(
    tables: StreamTableEnvironment,
    tmp_path: Path,
    columns: str,
    keys: str,
    options: str,
    message: str,
) -> None:
    def insert() -> None:
        create(tables, tmp_path / "t", columns, keys, f"'format' = 'json'{options}")
        tables.from_path("t").execute_insert("t")

    (tmp_path / "t").mkdir()
    with pytest.raises((GraphError, UnsupportedFeatureError), match=message):
        insert()


@pytest.mark.parametrize("option", ["'trigger' = 'partition-time'", "'delay' = '1 h'"])
def test_an_unbounded_job_refuses_a_delay_of_partition_commits(
    tables: StreamTableEnvironment, tmp_path: Path, option: str
) -> None:
    tables.execute_sql("CREATE TABLE s (id INT, dt STRING) WITH ('connector' = 'datagen')")
    policy = (
        "'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file', "
        f"'sink.partition-commit.{option[1:]}"
    )
    create(tables, tmp_path / "t", "id INT, dt STRING", "dt", policy)
    with pytest.raises(UnsupportedFeatureError, match=r"in an unbounded job, .* are not supported"):
        tables.execute_sql("INSERT INTO t SELECT * FROM s")


def test_only_filesystem_and_print_tables_can_have_partitions(
    tables: StreamTableEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    with_keys = "CREATE TABLE {} (id INT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = '{}')"
    tables.execute_sql(with_keys.format("p", "print"))
    tables.execute_sql("INSERT INTO p VALUES (1, 'x')").wait()
    assert capfd.readouterr().out == "+I[1, x]\n"
    tables.execute_sql(with_keys.format("k", "kafka"))
    with pytest.raises(
        GraphError, match=r"PARTITIONED BY \(dt\), and the connector 'kafka' has no"
    ):
        tables.execute_sql("INSERT INTO k VALUES (1, 'x')")


def test_a_file_outside_of_a_partition_folder_is_an_error(
    tables: StreamTableEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "dt=a").mkdir()
    (tmp_path / "dt=a" / "f.csv").write_text("1\n2\n")
    create(tables, tmp_path, "id INT, dt STRING", "dt")
    assert rows(tables) == [(1, "a"), (2, "a")]
    (tmp_path / "root.csv").write_text("5\n")
    with pytest.raises(
        Exception, match=r"root\.csv' is in no folder 'dt=\.\.\.', but the table is"
    ):
        rows(tables)


def test_describe_shows_partition_columns(tables: StreamTableEnvironment, tmp_path: Path) -> None:
    schema = Schema.new_builder().column("id", "INT").column("dt", "STRING").build()
    builder = TableDescriptor.for_connector("filesystem").schema(schema).format("csv")
    described = builder.option("path", str(tmp_path / "t")).partitioned_by("dt").build()
    assert described.get_partition_keys() == ["dt"]
    tables.create_temporary_table("t", described)
    tables.sql_query("SELECT 1, 'x'").execute_insert("t").wait()
    assert written(tmp_path / "t") == {"dt=x": "1\n"}
    tables.execute_sql("CREATE TABLE u LIKE t")
    [(text,)] = rows(tables, "SHOW CREATE TABLE u")
    assert ")\nPARTITIONED BY (`dt`)\nWITH (\n" in text
    with pytest.raises(
        GraphError, match=r"has PARTITIONED BY, and 't' has it, too; add \(EXCLUDING PARTI"
    ):
        tables.execute_sql("CREATE TABLE v (x INT) PARTITIONED BY (x) LIKE t")
