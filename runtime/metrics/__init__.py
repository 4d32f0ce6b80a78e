"""What operators and tasks count, how it reaches the driver, and what the driver makes of it.

A function registers metrics in the MetricGroup of its operator and subtask. The task itself counts as
it goes, in plain integers. At its end all of it becomes one TaskMetrics (task_metrics.py), which is sent
in the task's report, and so once for each subtask, from the attempt that Spark accepted; the driver
merges the subtasks into JobMetrics (job_metrics.py), which a JobExecutionResult shows.
"""
