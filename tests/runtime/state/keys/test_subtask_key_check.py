from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, failure_of, run_form, seen

from opchain.compiler.dsl.keyed_stream import DataStreamUtils
from opchain.datastream import KeyedProcessFunction
from opchain.runtime.errors import StateError
from opchain.runtime.state.keys.key_groups import KeyGroupRange, key_group
from opchain.runtime.state.keys.key_identity import SubtaskKeyCheck, key_identity, state_key


def test_keys_of_other_subtasks_are_refused() -> None:
    own = SubtaskKeyCheck(key_identity(), KeyGroupRange(0, 63), 128, None, "'sum' (job.py:3)")
    assert own.identity.plain == frozenset()
    for key in [*range(50), "a", 1.0, True, ("a", 1.0)]:
        for _ in range(2):
            if key_group(key, 128) <= 63:
                assert own.identity.of(key) == state_key(key)
            else:
                with pytest.raises(
                    StateError,
                    match=r"'sum' \(job.py:3\) gets the key .* groups 0 to 63; .* key_by",
                ):
                    own(key)


class Count(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.get_current_key(), value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operator", ["process", "reduce"])
@pytest.mark.parametrize("chaining", ["true", "false"])
def test_reinterpret_as_keyed_stream_requires_a_matching_partitioning(
    form: str, operator: str, chaining: str
) -> None:
    def draw(env: Any, partition: Any) -> None:
        numbers = env.from_collection(list(range(20)))
        keyed = DataStreamUtils.reinterpret_as_keyed_stream(
            partition(numbers).map(lambda number: number), lambda number: number
        )
        out = keyed.process(Count()) if operator == "process" else keyed.reduce(max)
        seen(out, "out")

    def by_key(stream: Any) -> Any:
        return stream.key_by(lambda number: number)

    def unpartitioned(stream: Any) -> Any:
        return stream.rebalance()

    settings: Any = {"parallelism": 2, "chaining": chaining}
    ran = run_form(lambda env: draw(env, by_key), form, **settings)
    assert len(ran.records("out")) == 20
    error = failure_of(lambda env: draw(env, unpartitioned), form, **settings)
    assert isinstance(error, StateError)
    assert "reinterpret_as_keyed_stream() needs a stream" in str(error)
    run_form(lambda env: draw(env, unpartitioned), form, parallelism=1, chaining=chaining)
