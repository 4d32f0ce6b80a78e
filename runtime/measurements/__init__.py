"""The metrics of tasks, vertices and jobs: tasks report them, and the driver adds them up."""
