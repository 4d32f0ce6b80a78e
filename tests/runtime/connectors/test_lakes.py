"""IcebergSink and DeltaSink, with the real libraries and tables on disk."""

from __future__ import annotations

import gc
import pkgutil
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Row
from opchain.common.time import Instant
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.commit_sink import SinkEpoch
from opchain.runtime.connectors.lakes import DeltaSink, IcebergSink
from opchain.runtime.errors import SinkError
from opchain.testing import SinkConformance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Python 3.13 warns of the connections of pyiceberg's catalogs, which only garbage collection closes.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
]

pa = pytest.importorskip("pyarrow")
SCHEMA = pa.schema([("v", pa.string())])


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Garbage collection closes the connections here, not in a later test."""
    yield
    gc.collect()


def catalog_of(target: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{target}/catalog.db", "warehouse": f"file://{target}"}


@pytest.mark.slow
class TestIceberg(SinkConformance):
    most_failures = 4

    def make_sink(self, target: Path) -> Any:
        if not target.exists():
            iceberg_table(target)
        return IcebergSink("n.t", "lake", catalog_of(target))

    def visible(self, target: Path) -> list[str]:
        return list(iceberg_table(target).scan().to_arrow()["v"].to_pylist())

    def staged(self, target: Path) -> list[Path]:
        return [path for path in target.rglob(".opchain/*/*") if path.is_file()]


def iceberg_table(target: Path) -> Any:
    catalogs = pytest.importorskip("pyiceberg.catalog")
    is_new = not target.exists()
    target.mkdir(exist_ok=True)
    catalog = catalogs.load_catalog("lake", **catalog_of(target))
    try:
        if is_new:
            catalog.create_namespace("n")
            return catalog.create_table("n.t", SCHEMA)
        return catalog.load_table("n.t")
    finally:
        catalog.engine.dispose()


@pytest.mark.slow
class TestDelta(SinkConformance):
    most_failures = 4

    def make_sink(self, target: Path) -> Any:
        deltalake = pytest.importorskip("deltalake")
        if not target.exists():
            deltalake.DeltaTable.create(str(target), schema=deltalake.Schema.from_arrow(SCHEMA))
        return DeltaSink(str(target))

    def visible(self, target: Path) -> list[str]:
        deltalake = pytest.importorskip("deltalake")
        return list(deltalake.DeltaTable(str(target)).to_pyarrow_table()["v"].to_pylist())

    def staged(self, target: Path) -> list[Path]:
        return [path for path in target.rglob(".opchain/*/*") if path.is_file()]


@pytest.mark.parametrize("suite", [TestIceberg(), TestDelta()], ids=["iceberg", "delta"])
def test_rows_dicts_and_tuples_are_written(suite: Any, tmp_path: Path) -> None:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([{"v": "a"}, Row(v="b"), ("c",)]).sink_to(suite.make_sink(tmp_path / "t"))
    env.execute()
    assert sorted(suite.visible(tmp_path / "t")) == ["a", "b", "c"]


@pytest.mark.parametrize("suite", [TestIceberg(), TestDelta()], ids=["iceberg", "delta"])
def test_another_job_with_the_same_epoch_numbers_commits_its_own_records(
    suite: Any, tmp_path: Path
) -> None:
    sink = suite.make_sink(tmp_path / "t").opened(None)
    for owner in ("job1.sink", "job2.sink"):
        sink.commit(SinkEpoch(owner, 5, "'sink'"), [sink.stage(owner, [{"v": owner}])])
        sink.commit(SinkEpoch(owner, 5, "'sink'"), [sink.stage(owner, [{"v": "again"}])])
    assert sorted(suite.visible(tmp_path / "t")) == ["job1.sink", "job2.sink"]
    assert (sink.last_commit("job1.sink"), sink.last_commit("job3.sink")) == (5, None)
    sink.reset_commits("job1.sink", 3)
    assert sink.last_commit("job1.sink") == 3


@pytest.mark.parametrize("suite", [TestIceberg(), TestDelta()], ids=["iceberg", "delta"])
def test_files_of_another_table_are_not_added(suite: Any, tmp_path: Path) -> None:
    old, new = (suite.make_sink(tmp_path / name).opened(None) for name in "ab")
    epoch = SinkEpoch("job.sink", 5, "'sink'")
    staged = [old.stage("job.sink", [{"v": "a"}])]
    with pytest.raises(SinkError, match=r"\.parquet is missing, with records of checkpoint 5"):
        new.commit(epoch, staged)
    assert suite.visible(tmp_path / "b") == []
    old.commit(epoch, staged)
    assert suite.visible(tmp_path / "a") == ["a"]


@pytest.mark.parametrize("suite", [TestIceberg(), TestDelta()], ids=["iceberg", "delta"])
def test_the_error_shows_a_record_that_does_not_fit(suite: Any, tmp_path: Path) -> None:
    sink = suite.make_sink(tmp_path / "t").opened(None)
    with pytest.raises(SinkError, match=r"can't write the record {'w': 1}: .*no column 'w'"):
        sink.stage("o", [{"v": "a"}, {"w": 1}])


def test_the_error_names_a_missing_table(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="there is no Delta table; create it"):
        DeltaSink(str(tmp_path / "none")).opened(None)
    iceberg_table(tmp_path / "t")
    with pytest.raises(SinkError, match=r"has no table 'n\.x'; create it"):
        IcebergSink("n.x", "lake", catalog_of(tmp_path / "t")).opened(None)


@pytest.mark.parametrize(
    ("suite", "commit"),
    [
        (TestIceberg(), "pyiceberg.table.Table._do_commit"),
        (TestDelta(), "deltalake.DeltaTable.create_write_transaction"),
    ],
    ids=["iceberg", "delta"],
)
def test_two_drivers_that_commit_one_epoch_concurrently_write_it_once(
    suite: Any, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first driver has read the table and is frozen before its commit, while the second one commits."""
    target = tmp_path / "t"
    frozen, other = (suite.make_sink(target).opened(None) for _ in range(2))
    epoch = SinkEpoch("a.b", 1, "here")
    staged = [frozen.stage("a.b", [{"v": "x"}])]
    original = pkgutil.resolve_name(commit)
    calls = 0

    def late(*arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            other.commit(epoch, staged)
        return original(*arguments, **more)

    monkeypatch.setattr(commit, late)
    frozen.commit(epoch, staged)
    assert calls == 2
    assert suite.visible(target) == ["x"]
    assert frozen.last_commit("a.b") == 1


INNER = [("x", pa.int64())]
COLUMNS = [
    *(("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))),
    *(("row", pa.struct(INNER)), ("rows", pa.list_(pa.struct(INNER)))),
    ("of", pa.map_(pa.string(), pa.struct(INNER))),
]


def write_to_delta(path: Path, record: Any) -> list[Any]:
    deltalake = pytest.importorskip("deltalake")
    deltalake.DeltaTable.create(path, schema=pa.schema(COLUMNS))
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_string("execution.target", "local")
    )
    env.from_collection([record]).sink_to(DeltaSink(str(path)))
    env.execute()
    found: list[Any] = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    return found


def test_instants_and_nested_rows_are_written(tmp_path: Path) -> None:
    day, moment = date(2024, 1, 2), datetime(1970, 1, 1, 0, 0, 5, tzinfo=timezone.utc)
    record = (1, day, Instant(5, 0), Row(x=1), [Row(2), None], {"a": Row(x=3)})
    assert write_to_delta(tmp_path / "t", record) == [
        {
            "id": 1,
            "day": day,
            "at": moment,
            "row": {"x": 1},
            "rows": [{"x": 2}, None],
            "of": [("a", {"x": 3})],
        }
    ]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"id": 1.5}, "'float' object cannot be interpreted as an integer"),
        ({"rows": [Row(x=1.5)]}, "'float' object cannot be interpreted as an integer"),
        ({"day": datetime(2024, 1, 2, 3)}, "has a time of day"),  # noqa: DTZ001
        (7, "the record 7: 'int' object is not iterable"),
    ],
)
def test_values_that_would_change_are_refused(tmp_path: Path, record: Any, reason: str) -> None:
    with pytest.raises(SinkError, match=reason):
        write_to_delta(tmp_path / "t", record)
