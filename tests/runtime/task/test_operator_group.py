from __future__ import annotations

import os
import socket

from opchain.runtime.operators.operator import TaskInfo
from opchain.runtime.program.operator_specs import MapSpec
from opchain.runtime.program.vertex_program import OperatorProgram, VertexProgram
from opchain.runtime.task.operator_services import operator_group

OPERATOR = OperatorProgram(0, "parse", "0b5c", "job.py:3", MapSpec(str), parent=-1)
TASK = TaskInfo(
    VertexProgram("7f", "lines -> parse", 4, 128, 0, (OPERATOR,)), 2, 1, "17", job_name="clicks"
)


def test_metric_identifiers_have_the_operator_scope_format_of_flink() -> None:
    group = operator_group(TASK, OPERATOR)
    assert group.get_metric_identifier("numRecordsIn") == (
        f"{socket.gethostname()}.taskmanager.{os.getpid()}.clicks.parse.2.numRecordsIn"
    )


def test_the_scope_variables_are_those_of_flink() -> None:
    assert operator_group(TASK, OPERATOR).get_all_variables() == {
        "<host>": socket.gethostname(),
        "<tm_id>": str(os.getpid()),
        "<job_name>": "clicks",
        "<task_id>": "7f",
        "<task_name>": "lines -> parse",
        "<task_attempt_id>": "17",
        "<task_attempt_num>": "1",
        "<subtask_index>": "2",
        "<operator_id>": "0b5c",
        "<operator_name>": "parse",
    }
