"""The mailbox of a task, through which one thread processes records, timers, checkpoints and results from other threads.

    any thread --MailboxExecutor.execute--> TaskMailbox --MailboxProcessor.turn--> the task's thread
                                                            one default action per turn

- A `Mail` is an action with a priority. The `TaskMailbox` queues it.
- The `MailboxProcessor` is the loop. Each turn runs the waiting mail, and then the default action, which processes
  one buffer of input. The action gets a `Controller`, to suspend itself or to end the loop.
- A `MailboxExecutor` lets an operator send mail, and wait (`yield_`) without blocking downstream operators.
- A `ProcessingTimeService` gives an operator the time and its timers, which arrive as mail. All services of a task
  share the thread of one `SystemTimerService`.
- The mail of a task runs under a lock if a source of the task blocks in its own thread.
- `MailboxMetrics` measures the loop: how long the task was busy, idle or back-pressured.

    processor = MailboxProcessor(process_one_buffer)
    while processor.turn():         # in the generator that a Spark task is
        yield from full_buffers()
    processor.prepare_close()
    processor.drain()
    processor.close()               # in a finally

The package uses the standard library only, and nothing of Spark. Flink: the package
org.apache.flink.streaming.runtime.tasks.mailbox and classes around it.
"""
