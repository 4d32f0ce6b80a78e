from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, job_of
from programs import CountingDiscardingSink

from opchain.runtime.errors import InternalError
from opchain.runtime.functions.source_sink_functions import TwoPhaseSinkFunction
from opchain.runtime.local.job import run_in_process


@pytest.mark.parametrize("form", FORMS)
def test_the_driver_gets_the_committables_of_all_subtasks(form: str) -> None:
    job = job_of(
        lambda env: env.from_collection([1, 2, 3]).add_sink(
            TwoPhaseSinkFunction(CountingDiscardingSink())
        ),
        form,
        parallelism=2,
    )
    outcome = run_in_process(job)
    (counts,) = outcome.committables.values()
    assert sorted(counts) == [1, 2]


def test_invoke_of_a_two_phase_sink_function_is_an_internal_error() -> None:
    function = TwoPhaseSinkFunction[int](CountingDiscardingSink())
    context: Any = None
    assert repr(function) == "CountingDiscardingSink()"
    assert not function.reads_timestamps
    with pytest.raises(InternalError, match="its writer takes them"):
        function.invoke(1, context)
