"""State read as rows and written as savepoints, with both state backends."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from epoch_runs import EpochRun, Numbered, given
from forms import seen
from state_backends import BACKENDS

import opchain.state
from opchain.common import Row, Time, Types, WatermarkStrategy
from opchain.compiler.cli import main
from opchain.datastream.functions import (
    BroadcastProcessFunction,
    KeyedProcessFunction,
    ProcessJoinFunction,
)
from opchain.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey, CheckpointKeyError
from opchain.runtime.checkpoint.metadata import encode
from opchain.runtime.checkpoint.savepoint import find_checkpoint
from opchain.runtime.checkpoint.state_rows import as_json
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.errors import CheckpointError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Everything(KeyedProcessFunction[str, str, Any]):
    """Has a state of each kind, a timer, and a state with a time to live."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.STRING()))
        self.letters = runtime_context.get_map_state(
            MapStateDescriptor("letters", Types.STRING(), Types.INT())
        )
        passing = ValueStateDescriptor("passing", Types.TUPLE([Types.STRING(), Types.INT()]))
        passing.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.passing = runtime_context.get_state(passing)

    def process_element(self, value: str, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        self.last.add(value)
        self.letters.put(value[-1], len(value))
        self.passing.update((value, len(value)))
        ctx.timer_service().register_processing_time_timer(5000)
        yield value[0], self.count.value(), sorted(self.letters.items())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


def everything(env: Any, key_type: Any = None) -> None:
    words = given(env, "words")
    seen(words.key_by(lambda word: word[0], key_type).process(Everything()).uid("all"), "all")


def run_of(
    draw: Callable[[Any], Any], folder: Path, backend: str = "hashmap", n: int = 2
) -> EpochRun:
    return EpochRun(draw, folder, n, settings={"state_backend": backend})


def saved(run: EpochRun, name: str = "saved") -> str:
    """The savepoint that a run has written."""
    assert run.latest is not None
    storage = checkpoint_storage(str(run.folder))
    storage.publish(f"chk-{run.latest.checkpoint_id}/_metadata", encode(run.latest))
    return f"{run.folder}/chk-{run.latest.checkpoint_id}"


def resumed(savepoint: str, draw: Callable[[Any], Any], backend: str, n: int = 2) -> EpochRun:
    """A run that starts from a savepoint, and reads its files."""
    found = find_checkpoint(savepoint)
    run = run_of(draw, found.storage.url, backend, n)  # type: ignore[arg-type]
    run.latest = found.metadata
    return run


@pytest.fixture(params=BACKENDS)
def checkpoint(request: Any, tmp_path: Path) -> tuple[str, str]:
    """Two epochs of `everything`, so that the second file has changes; and the backend."""
    run = run_of(everything, tmp_path / "job", request.param)
    run.run(words=["ab", "abc", "xy"], now_ms=10)
    run.run(words=["ad", "ka"], now_ms=20)
    run.close()
    return saved(run), request.param


def values(rows: Any) -> dict[Any, Any]:
    return {row.key: row.value for row in rows}


def test_rows_of_each_kind_of_state_are_read(checkpoint: tuple[str, str]) -> None:
    read = opchain.state.read
    place, _ = checkpoint
    assert values(read(place, "all", "count")) == {"a": 3, "x": 1, "k": 1}
    assert values(read(place, "all", "last")) == {
        "a": ["ab", "abc", "ad"],
        "x": ["xy"],
        "k": ["ka"],
    }
    assert values(read(place, "all", "letters"))["a"] == {"b": 2, "c": 3, "d": 2}
    assert values(read(place, "all", "passing"))["a"] == ("ad", 2)
    timers = list(read(place, "all", "user-timers"))
    assert {(row.key, row.value, row.kind) for row in timers} == {
        (key, 5000, "processing-time timer") for key in "axk"
    }
    assert {row.state for row in read(place, key="a")} == {
        *("count", "last", "letters", "passing", "user-timers")
    }
    assert len({row.subtask for row in read(place)}) == 2


def test_the_error_about_a_wrong_name_lists_the_right_names(checkpoint: tuple[str, str]) -> None:
    with pytest.raises(
        CheckpointError, match="no state of an operator 'al'; it has state of: 'all'"
    ):
        opchain.state.read(checkpoint[0], "al")
    with pytest.raises(CheckpointError, match=r"no state 'counts'; it has: .*'count'"):
        opchain.state.read(checkpoint[0], "all", "counts")


@pytest.mark.parametrize("form", ["rows", "pandas", "arrow"])
def test_a_job_starts_with_changed_rows(
    checkpoint: tuple[str, str], form: str, tmp_path: Path
) -> None:
    place, backend = checkpoint
    found = opchain.state.read(place, "all", "count")
    rows: Any
    if form == "pandas":
        rows = found.to_pandas()
        rows.loc[rows["key"] == "a", "value"] = 100
        rows = rows[rows["key"] != "x"]
    else:
        rows = [
            opchain.state.StateRow(
                **{**vars_of(row), "value": 100 if row.key == "a" else row.value}
            )
            for row in found
            if row.key != "x"
        ]
        if form == "arrow":
            from opchain.runtime.checkpoint.state_rows import arrow_table  # noqa: PLC0415

            rows = arrow_table(rows)
    opchain.state.write(tmp_path / "mended", rows, base=place)
    run = resumed(str(tmp_path / "mended"), everything, backend, n=3)
    out = run.run(words=["az", "xz", "kz", "nz"], now_ms=30).records("all")
    run.close()
    counts = {record[0]: record[1:] for record in out}
    assert counts["a"] == (
        101,
        [("b", 2), ("c", 3), ("d", 2), ("z", 2)],
    )  # the other states are unchanged
    assert {key: count for key, (count, _) in counts.items()} == {"a": 101, "x": 1, "k": 2, "n": 1}


def vars_of(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def test_timers_and_state_with_ttl_are_written_unchanged(
    checkpoint: tuple[str, str], tmp_path: Path
) -> None:
    place, backend = checkpoint
    timers = opchain.state.read(place, "all", "user-timers").to_pandas()
    timers["value"] = 7000
    passing = opchain.state.read(place, "all", "passing").to_pandas()
    opchain.state.write(tmp_path / "one", timers, base=place)
    opchain.state.write(tmp_path / "two", passing, base=tmp_path / "one")
    assert values(opchain.state.read(tmp_path / "two", "all", "passing"))["a"] == ("ad", 2)
    run = resumed(str(tmp_path / "two"), everything, backend)
    assert run.run(words=[], now_ms=6000).records("all") == []
    assert sorted(run.run(words=[], now_ms=8000).records("all")) == [
        ("a", 7000),
        ("k", 7000),
        ("x", 7000),
    ]
    run.close()


@pytest.mark.parametrize("key_type", [None, Types.STRING()])
def test_a_job_starts_from_rows_without_a_base_checkpoint(key_type: Any, tmp_path: Path) -> None:
    import pandas as pd  # noqa: PLC0415

    frame = pd.DataFrame({"key": list("abcdefgh"), "value": range(8)})
    opchain.state.write(tmp_path / "first", frame, operator="all", state="count", key_type=key_type)
    run = resumed(str(tmp_path / "first"), lambda env: everything(env, key_type), "hashmap", n=3)
    out = run.run(words=[f"{key}-" for key in "abcdefgh"], now_ms=30).records("all")
    run.close()
    assert sorted((key, count) for key, count, _ in out) == [
        (key, number + 1) for number, key in enumerate("abcdefgh")
    ]


def test_a_key_type_that_gives_other_key_groups_is_refused(
    checkpoint: tuple[str, str], tmp_path: Path
) -> None:
    rows = opchain.state.read(checkpoint[0], "all", "count")
    with pytest.raises(StateError, match="in other key groups than keys of the type String"):
        opchain.state.write(tmp_path / "w", rows, base=checkpoint[0], key_type=Types.STRING())


def test_the_declared_key_type_of_a_checkpoint_is_used_for_written_rows(tmp_path: Path) -> None:
    def draw(env: Any) -> None:
        everything(env, Types.STRING())

    run = run_of(draw, tmp_path / "job")
    run.run(words=["ab", "kb", "xb"], now_ms=10)
    run.close()
    rows = [{"key": key, "value": 10} for key in "akxyz"]
    opchain.state.write(tmp_path / "w", rows, base=saved(run), operator="all", state="count")
    again = resumed(str(tmp_path / "w"), draw, "hashmap", n=3)
    out = again.run(words=["a-", "z-"], now_ms=20).records("all")
    again.close()
    assert sorted((key, count) for key, count, _ in out) == [("a", 11), ("z", 11)]


def windows(env: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    pairs = given(env, "pairs").assign_timestamps_and_watermarks(strategy)
    summed = (
        pairs.key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda a, b: (a[0], b[1], a[2] + b[2]))
    )
    seen(summed.uid("sums"), "sums")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_contents_of_windows_are_read_and_changed(backend: str, tmp_path: Path) -> None:
    run = run_of(windows, tmp_path / "job", backend, 1)
    run.run(pairs=[("a", 1000, 1), ("a", 2000, 5), ("b", 3000, 2), ("a", 12000, 7)])
    place = saved(run)
    run.close()
    contents = opchain.state.read(place, "sums", "window-contents")
    found = {(row.key, row.window_start, row.window_end): row.value for row in contents}
    assert found[("a", 10000, 20000)] == ("a", 12000, 7)
    frame = contents.to_pandas()
    frame["value"] = [("a", 12000, 700), *frame["value"][1:]]
    opchain.state.write(tmp_path / "w", frame, base=place)
    again = resumed(str(tmp_path / "w"), windows, backend, 1)
    out = again.run(pairs=[("a", 13000, 1), ("z", 60000, 0)]).records("sums")
    again.close()
    assert ("a", 13000, 701) in out


def count_windows(env: Any) -> None:
    words = given(env, "words").key_by(lambda word: word[0])
    seen(words.count_window(3, 2).reduce(lambda a, b: a + b).uid("joined"), "joined")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_contents_of_count_windows_are_read_and_changed(backend: str, tmp_path: Path) -> None:
    run = run_of(count_windows, tmp_path / "job", backend, 1)
    run.run(words=["a1", "b1", "a2", "a3", "b2"])
    place = saved(run)
    run.close()
    contents = opchain.state.read(place, "joined", "window-contents")
    found = {(row.key, row.window_start): row.value for row in contents}
    assert found == {("a", 1): "a3", ("b", 0): "b1b2"}
    shown = CliRunner().invoke(main, ["state", place, "--state", "window-contents"]).stdout
    assert "number 1" in shown
    frame = contents.to_pandas()
    frame["value"] = frame["value"].str.upper()
    opchain.state.write(tmp_path / "w", frame, base=place)
    again = resumed(str(tmp_path / "w"), count_windows, backend, 1)
    out = again.run(words=["b3", "a4", "a5"]).records("joined")
    again.close()
    assert out == ["B1B2b3", "A3a4a5"]


class Pairs(ProcessJoinFunction[str, str, str]):
    def process_element(self, left: str, right: str, ctx: Any) -> Iterator[str]:
        yield left + right


def joined(env: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda word, _: int(word[1:])
    )
    left, right = (
        given(env, name, strategy).key_by(lambda word: word[0]) for name in ("left", "right")
    )
    between = left.interval_join(right).between(Time.milliseconds(-5), Time.milliseconds(5))
    seen(between.process(Pairs()).uid("pairs"), "pairs")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_timers_of_an_interval_join_are_read_and_changed(backend: str, tmp_path: Path) -> None:
    run = run_of(joined, tmp_path / "job", backend, 1)
    run.run(left=["a1", "b2"], right=["a3"])
    place = saved(run)
    run.close()
    found = {
        (row.key, row.namespace): row.value
        for row in opchain.state.read(place, "pairs")
        if row.kind == "event-time timer"
    }
    assert found == {("a", "CLEANUP_LEFT"): 6, ("b", "CLEANUP_LEFT"): 7, ("a", "CLEANUP_RIGHT"): 8}
    shown = CliRunner().invoke(main, ["state", place]).stdout
    assert "'CLEANUP_LEFT'" in shown
    (timers,) = {row.state for row in opchain.state.read(place) if row.namespace is not None}
    opchain.state.write(
        tmp_path / "w", opchain.state.read(place, "pairs", timers).to_arrow(), base=place
    )
    again = opchain.state.read(tmp_path / "w", "pairs", timers)
    assert list(again) == list(opchain.state.read(place, "pairs", timers))
    assert all(json.loads(as_json(row))["namespace"] == row.namespace for row in again)


class Rules(BroadcastProcessFunction[Any, Any, Any]):
    rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.get_broadcast_state(self.rules).get(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.get_broadcast_state(self.rules).put(*value)
        yield from ()


def without_key(env: Any) -> None:
    rules = given(env, "rules").broadcast(Rules.rules)
    seen(given(env, "words").connect(rules).process(Rules()).uid("ruled"), "ruled")
    seen(given(env, "more").map(Numbered()).uid("numbered"), "numbers")


def test_operator_state_is_read_and_written(tmp_path: Path) -> None:
    run = run_of(without_key, tmp_path / "job")
    run.run(words=[], rules=[("a", 1), ("b", 2)], more=[0, 0, 0, 0, 0])
    place = saved(run)
    run.close()
    rules = list(opchain.state.read(place, "ruled"))
    assert {(row.kind, row.key, row.value, row.subtask) for row in rules} == {
        ("broadcast", key, value, subtask)
        for key, value in (("a", 1), ("b", 2))
        for subtask in (0, 1)
    }
    numbers = list(opchain.state.read(place, "numbered", "number"))
    assert sorted(row.value for row in numbers) == [2, 3]
    changed = [
        *({"operator": "ruled", "state": "rules", "kind": "broadcast", "key": "a", "value": 9},),
        {
            "operator": "numbered",
            "state": "number",
            "kind": "operator list",
            "value": 40,
            "subtask": 1,
        },
    ]
    opchain.state.write(tmp_path / "w", changed, base=place)
    again = resumed(str(tmp_path / "w"), without_key, "hashmap")
    ran = again.run(words=["a", "a", "b"], rules=[], more=[0, 0])
    again.close()
    assert sorted(ran.records("ruled"), key=str) == [("a", 9), ("a", 9), ("b", None)]
    assert sorted(ran.records("numbers")) == [1, 41]


def test_columns_have_the_types_of_the_state(checkpoint: tuple[str, str]) -> None:
    place, _ = checkpoint
    schema = opchain.state.read(place, "all", "passing").to_arrow().schema
    assert str(schema.field("key").type) == "string"
    assert str(schema.field("value").type) == "struct<f0: string, f1: int64>"
    assert str(opchain.state.read(place, "all", "last").to_arrow().schema.field("value").type) == (
        "list<element: string>"
    )
    with pytest.raises(StateError, match="one operator and state at a time"):
        opchain.state.read(place, "all").to_arrow()


def test_the_state_command_reads_and_writes_rows(
    checkpoint: tuple[str, str], tmp_path: Path
) -> None:
    place, _ = checkpoint

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["state", place, *arguments])

    text = run("--operator", "all", "--key", "a")
    assert text.exit_code == 0, text.output
    assert "is not signed" in text.stderr
    lines = text.stdout.splitlines()
    assert lines[0].startswith("operator 'all' (id ")
    assert lines[1].split() == ["state", "kind", "key", "window", "key", "group", "value"]
    assert [line.split()[0] for line in lines[2:]] == [
        *("count", "last", "letters", "passing", "user-timers")
    ]
    assert "1970-01-01 00:00:05.000" in lines[-1]
    objects = [
        json.loads(line) for line in run("--state", "count", "--format", "json").stdout.splitlines()
    ]
    assert {item["key"]: item["value"] for item in objects} == {"a": 3, "x": 1, "k": 1}
    parquet = tmp_path / "rows.parquet"
    assert run("--state", "count", "-o", str(parquet)).exit_code == 0
    import pyarrow.parquet as pq  # noqa: PLC0415

    assert sorted(pq.read_table(parquet).column("value").to_pylist()) == [1, 1, 3]
    assert run("--format", "parquet").exit_code == 2
    limited = run("--limit", "2").stdout
    assert "more: --limit" in limited


def test_a_signed_checkpoint_is_read_with_its_key_only(
    checkpoint: tuple[str, str], tmp_path: Path
) -> None:
    key_file = tmp_path / "key"
    key_file.write_text("k" * 32)
    rows = opchain.state.read(checkpoint[0], "all", "count")
    signed = tmp_path / "signed"
    opchain.state.write(signed, rows, operator="all", state="count", key_file=key_file)
    with pytest.raises(CheckpointKeyError, match="is signed by the key"):
        opchain.state.read(signed)
    assert values(opchain.state.read(signed, key_file=key_file)) == {"a": 3, "x": 1, "k": 1}
    key = CheckpointKey.of(b"k" * 32)
    assert find_checkpoint(str(signed), key).metadata.kind == "savepoint"


def test_rows_that_do_not_match_the_state_are_refused(
    checkpoint: tuple[str, str], tmp_path: Path
) -> None:
    place, _ = checkpoint
    target = tmp_path / "w"
    with pytest.raises(StateError, match=r"'valeu'.* are not columns of state"):
        opchain.state.write(target, [{"key": 1, "value": 1, "valeu": 2}], operator="o", state="s")
    with pytest.raises(StateError, match="the kind 'valu' of state 's' is unknown"):
        opchain.state.write(target, [{"key": 1, "value": 1}], operator="o", state="s", kind="valu")
    row = {"key": "a", "value": 1, "key_group": 5}
    with pytest.raises(StateError, match="has key group 5 in its row"):
        opchain.state.write(target, [row], operator="all", state="count", base=place)
    (target := tmp_path / "used").mkdir()
    (target / "file").write_text("")
    with pytest.raises(CheckpointError, match="is not empty"):
        opchain.state.write(target, [], operator="all", state="count")


def test_rows_are_converted_to_tuples_and_back() -> None:
    from opchain.runtime.checkpoint.state_rows import (  # noqa: PLC0415
        StateRow,
        arrow_table,
        rows_from,
    )

    value = {"k": [("a", Row(x=1, y=None))]}
    row = StateRow("o", "", "s", "value", ("a", 1), None, None, value, 3, 0)
    (again,) = rows_from(arrow_table([row]), {})
    assert (again.key, again.value, again.key_group) == (("a", 1), value, 3)


def test_datetimes_keep_their_time_zone() -> None:
    from opchain.runtime.checkpoint.state_rows import (  # noqa: PLC0415
        StateRow,
        arrow_table,
        rows_from,
    )

    zoned = datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=timezone.utc)
    value = (zoned, zoned.replace(tzinfo=None))
    row = StateRow("o", "", "s", "value", "a", None, None, value, 3, 0)
    (again,) = rows_from(arrow_table([row]), {})
    assert again.value == value
