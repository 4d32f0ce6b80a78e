"""The executor side of a job: one stream task per vertex and subtask."""
