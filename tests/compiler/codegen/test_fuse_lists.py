"""Functions that gather what they emit, in a list or with a collector, give the same as when they are called."""

from __future__ import annotations

from typing import Any

import pytest
from forms import failure_of, job_of, notes_of, run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.datastream import OutputTag, ProcessFunction
from opchain.datastream.functions import CoFlatMapFunction, FlatMapFunction

ODD = OutputTag("odd")
FORMS = ("generated", "inlined")


class Words(FlatMapFunction[str, Any]):
    def flat_map(self, value: str, out: Any) -> None:  # type: ignore[override]
        for word in value.split():
            out.collect((word, 1))


class Ends(FlatMapFunction[int, int]):
    """Returns early, and collects at several places."""

    def flat_map(self, value: int, out: Any) -> None:  # type: ignore[override]
        if value % 5 == 0:
            return
        out.collect(value)
        for number in range(value % 3):
            if number == 1:
                continue
            out.collect(value + number)
        out.close()


class Parts(ProcessFunction[int, Any]):
    def process_element(self, value: int, ctx: Any, out: Any) -> None:  # type: ignore[override]
        if value % 2:
            out.collect((ODD, value))
        out.collect((value, -value))


class Both(CoFlatMapFunction[int, int, int]):
    def flat_map1(self, value: int, out: Any) -> None:  # type: ignore[override]
        out.collect(value)

    def flat_map2(self, value: int, out: Any) -> None:  # type: ignore[override]
        out.collect(-value)
        out.collect(value)


class Changed(FlatMapFunction[int, Any]):
    """Collects the same list several times and changes it in between, so all collected records have its last content."""

    def flat_map(self, value: int, out: Any) -> None:  # type: ignore[override]
        row = [value]
        out.collect(row)
        row.append(value + 1)
        out.collect(row)


class Inverted(FlatMapFunction[int, Any]):
    """Fails after it has collected."""

    def flat_map(self, value: int, out: Any) -> None:  # type: ignore[override]
        for number in (1, value):
            out.collect(6 // number)


def listed(value: int) -> list[Any]:
    found = []
    for number in (value, value + 1):
        if number % 3:
            found.append((number % 4, number))  # noqa: PERF401 - as users write it
    return found


def read_back(value: int) -> list[int]:
    found = [value]
    found.append(len(found) + value)
    return found


def programs(env: Any, numbers: list[int]) -> None:
    values = env.from_collection(numbers).rebalance()
    texts = values.map(lambda x: f"{x} {x % 3}  {x + 1}")
    seen(texts.flat_map(Words()).key_by(lambda pair: pair[0]).sum(1), "sums")
    seen(values.flat_map(Ends()).map(lambda x: x * 2), "ends")
    parts = values.process(Parts())
    seen(parts.map(lambda pair: pair[1]), "parts")
    seen(parts.get_side_output(ODD), "odd")
    seen(values.connect(values.map(lambda x: x + 1)).flat_map(Both()), "both")
    seen(values.flat_map(Changed()).map(len), "changed")
    pairs = values.flat_map(listed)
    seen(pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])), "listed")
    seen(values.flat_map(read_back), "read back")


@given(st.lists(st.integers(0, 99), max_size=30), st.sampled_from(["STREAMING", "BATCH"]))
@settings(max_examples=6, deadline=None)
def test_fused_lists_emit_the_same_records(numbers: list[int], mode: str) -> None:
    def draw(env: Any) -> None:
        programs(env, numbers)

    expected = run_form(draw, "interpreted", mode=mode, batch_size=7)
    for form in FORMS:
        ran = run_form(draw, form, mode=mode, batch_size=7)
        for name in ("sums", "ends", "parts", "odd", "both", "changed", "listed", "read back"):
            assert ran.subtasks(name) == expected.subtasks(name), (form, name)
        assert ran.counters() == expected.counters(), form


@pytest.mark.parametrize(
    ("function", "is_built"),
    [(Ends(), False), (listed, False), (Changed(), True), (Inverted(), True), (read_back, True)],
)
def test_a_list_is_built_only_if_its_function_may_fail_or_reads_it(
    function: Any, *, is_built: bool
) -> None:
    def draw(env: Any) -> None:
        emitted = env.from_sequence(0, 9).flat_map(function)
        seen(emitted.map(lambda x: [1][x + 9]), "rows")

    source = str(job_of(draw).vertices[0].source).partition("def fallback_0")[0]
    assert (".append(" in source.replace("values_of_3.append", "")) is is_built, source


@pytest.mark.parametrize("form", ["interpreted", *FORMS])
def test_records_of_a_function_that_fails_are_not_processed(form: str) -> None:
    def draw(env: Any) -> None:
        quotients = env.from_sequence(0, 0).flat_map(Inverted())
        seen(quotients.map(lambda x: [1][x + 9]), "rows")

    error = failure_of(draw, form)
    assert type(error) is ZeroDivisionError
    assert "record 0" in notes_of(error)


@pytest.mark.parametrize("form", ["interpreted", *FORMS])
def test_a_function_that_fails_before_an_exchange_names_its_record(form: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(0, 9).flat_map(Inverted()).rebalance(), "rows")

    error = failure_of(draw, form)
    assert type(error) is ZeroDivisionError
    assert "record 0" in notes_of(error)


class Yields(FlatMapFunction[int, int]):
    def flat_map(self, value: int, out: Any) -> Any:  # type: ignore[override]
        out.collect(value)
        yield value


class Returns(FlatMapFunction[int, int]):
    def flat_map(self, value: int, out: Any) -> Any:  # type: ignore[override]
        out.collect(value)
        return [value]


def emit(value: int, out: Any) -> None:
    out.collect(value)


class PassesOn(FlatMapFunction[int, int]):
    def flat_map(self, value: int, out: Any) -> None:  # type: ignore[override]
        emit(value, out)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (Yields(), "yields and takes a collector; use one of them"),
        (Returns(), "returns a value and takes a collector; collect the value"),
        (
            PassesOn(),
            "uses its collector for more than collect(); call collect() in statements of its own",
        ),
    ],
)
def test_functions_with_other_uses_of_a_collector_are_called(function: Any, reason: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(0, 9).flat_map(function), "rows")

    remarks = " | ".join(text for _, texts in job_of(draw).vertices[0].remarks for text in texts)
    assert reason in remarks
    assert run_form(draw).records("rows") == run_form(draw, "interpreted").records("rows")
