"""Tables of databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.table.connectors.options import Options, TableSource
from opchain.compiler.table.connectors.row_types import row_type

if TYPE_CHECKING:
    from opchain.compiler.dsl.data_stream import DataStream


def write_jdbc(stream: DataStream[Any], options: Options) -> Any:
    """Writes the rows of a stream to a table of a database. A primary key makes it an upsert."""
    from opchain.runtime.connectors.jdbc.mysql import is_mysql  # noqa: PLC0415 - few tables are written to databases
    from opchain.runtime.connectors.jdbc.sink import JdbcSink  # noqa: PLC0415 - likewise

    columns, connection = options.columns, jdbc_connection(options)
    # In PostgreSQL a quoted name would be case-sensitive. Flink's names are not quoted there, either.
    quoted = "`{}`".format if is_mysql(connection.url) else str
    names = [quoted(each.name) for each in columns]
    keys = [quoted(key) for key in options.schema.keys]
    table = ".".join(quoted(part.strip("`")) for part in options.need("table-name").split("."))
    marks = ", ".join("?" for _ in names)
    sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - the program's own
    if keys and is_mysql(connection.url):
        changes = ", ".join(f"{name} = VALUES({name})" for name in names)
        sql += f" ON DUPLICATE KEY UPDATE {changes}"
    elif keys:
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in names if name not in keys)
        sql += f" ON CONFLICT ({', '.join(keys)}) DO " + (
            f"UPDATE SET {changes}" if changes else "NOTHING"
        )
    execution = _execution(options)
    options.drop("scan.partition.", "scan.fetch-size", "scan.auto-commit", "lookup.")
    options.finish()
    return stream.add_sink(JdbcSink.sink(sql, row_type(columns), connection, execution))


def _execution(options: Options) -> Any:
    """The batches and retries of a sink."""
    from opchain.runtime.connectors.jdbc.options import JdbcExecutionOptions  # noqa: PLC0415 - likewise

    builder = JdbcExecutionOptions.builder()
    rows, retries = options.number("sink.buffer-flush.max-rows"), options.number("sink.max-retries")
    if rows:  # In Flink, 0 means batches of any size
        builder.with_batch_size(rows)
    if retries is not None:
        builder.with_max_retries(retries)
    why = "rows become visible when the checkpoint or the job is complete"
    options.without_effect(why, "sink.buffer-flush.interval")
    return builder.build()


def read_jdbc(options: Options) -> TableSource:
    """A table of a database as a source."""
    from opchain.runtime.connectors.jdbc.source import JdbcSource  # noqa: PLC0415 - likewise

    columns = options.columns
    wire = row_type(columns)
    query = f"SELECT {', '.join(each.name for each in columns)} FROM {options.need('table-name')}"  # noqa: S608 - the program's own
    builder = JdbcSource.builder().set_sql(query).set_type_info(wire)
    column = options.take("scan.partition.column")
    low, high = (options.number(f"scan.partition.{each}-bound") for each in ("lower", "upper"))
    partitions = options.number("scan.partition.num") or 0
    if column is not None:
        builder.partition_by(column, low, high, partitions)
    builder.set_connection_options(jdbc_connection(options))
    options.drop("scan.fetch-size", "scan.auto-commit", "lookup.", "sink.parallelism")
    options.drop("sink.buffer-flush.max-rows", "sink.buffer-flush.interval", "sink.max-retries")
    options.finish()
    return TableSource.of_rows(builder.build(), wire)


def jdbc_connection(options: Options) -> Any:
    """The connection options of a table."""
    from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions  # noqa: PLC0415 - likewise

    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(options.need("url"))
    user, password = options.take("username"), options.take("password")
    options.take("driver")
    if user is not None:
        builder.with_user_name(user)
    if password is not None:
        builder.with_password(password)
    return builder.build()
