from __future__ import annotations

from forms import job_of

from opchain.datastream.functions import MapFunction
from opchain.runtime.operators.operator import TaskInfo
from opchain.runtime.testing.operator_harness import OneInputOperatorHarness


class Same(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return value


def test_a_task_has_a_number_in_the_job_and_the_name_of_flink() -> None:
    job = job_of(
        lambda env: env.from_sequence(1, 9).rebalance().map(int).name("a").print(), parallelism=4
    )
    info = TaskInfo(job.vertices[1], 2, attempt=3)
    assert info.task == 6
    assert info.name_with_subtasks == "a -> Sink: Print to Std. Out (3/4)#3"


def test_an_operator_and_its_function_share_a_metric_group() -> None:
    with OneInputOperatorHarness(Same()) as harness:
        context = harness.operator.context
        assert context.metrics is context.runtime_context.get_metrics_group()
