"""Jobs at run time: the client, the status and the result of a job."""
