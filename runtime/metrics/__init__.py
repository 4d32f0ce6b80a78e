"""Metrics of operators and tasks, and how they reach the driver.

A function registers metrics in the MetricGroup of its operator and subtask. The task counts in plain integers. At the
end both become one TaskMetrics (task_metrics.py), which is sent with the task's report. So there is one per subtask,
from the attempt that Spark accepted. The driver merges the subtasks into JobMetrics (job_metrics.py), which a
JobExecutionResult shows.
"""
