"""How one task does everything in one thread: records, timers, checkpoints, answers from outside.

    any thread --MailboxExecutor.execute--> TaskMailbox --MailboxProcessor.turn--> the task's thread
                                                            one default action per turn

- A `Mail` is an action with a priority; the `TaskMailbox` queues it.
- The `MailboxProcessor` is the loop: a bounded amount of mail, then one default action, which
  processes a buffer of input and may ask its `Controller` to suspend it or to end the loop.
- A `MailboxExecutor` is how an operator sends mail, and how it waits (`yield_`) without blocking the
  operators downstream of it.
- A `ProcessingTimeService` gives an operator the time, and its timers as mail; all those of a task
  share the thread of one `SystemTimerService`.
- A `LegacySourceThread` runs a source that blocks, beside a loop whose mail runs under a lock.
- `MailboxMetrics` says what the loop did, and how long the task was busy, idle, back-pressured.

    processor = MailboxProcessor(process_one_buffer)
    while processor.turn():         # in the generator that a Spark task is
        yield from full_buffers()
    processor.prepare_close()
    processor.drain()
    processor.close()               # in a finally

No Spark in here, and nothing but the standard library. Flink: the package
org.apache.flink.streaming.runtime.tasks.mailbox and its neighbours.
"""
