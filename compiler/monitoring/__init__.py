"""Shows running jobs: on a terminal, in the log, in a notebook, and on a page."""
