"""The numbers of a task, a vertex, and a job: what the tasks report and the driver adds up."""
