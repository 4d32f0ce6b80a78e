"""The metric group of an operator on a subtask, with Flink's scope and variables."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from opchain.runtime.metrics.metric_group import MetricGroup

if TYPE_CHECKING:
    from opchain.runtime.operators.context import TaskInfo
    from opchain.runtime.task.vertex_program import OperatorProgram


def operator_group(task: TaskInfo, operator: OperatorProgram) -> MetricGroup:
    """The group whose identifiers have the form of Flink's `metrics.scope.operator`.

    That is `<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>`. What stands for a
    task manager is the Python worker, by its process id; `<job_id>` is the driver's secret.
    """
    host, worker = socket.gethostname(), str(os.getpid())
    subtask = str(task.subtask)
    return MetricGroup(
        (host, "taskmanager", worker, task.job_name, operator.name, subtask),
        {
            "<host>": host,
            "<tm_id>": worker,
            "<job_name>": task.job_name,
            "<task_id>": task.vertex.vertex_id,
            "<task_name>": task.vertex.name,
            "<task_attempt_id>": task.attempt_id,
            "<task_attempt_num>": str(task.attempt),
            "<subtask_index>": subtask,
            "<operator_id>": operator.operator_id,
            "<operator_name>": operator.name,
        },
    )
