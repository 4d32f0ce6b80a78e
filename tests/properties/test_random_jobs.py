"""Random jobs have the results of their model, in every form, batch size and attempt."""

from __future__ import annotations

import pickle
from collections import Counter
from functools import partial
from typing import Any

from forms import FORMS, Ran, failure_of, run_form
from hypothesis import given, settings
from random_jobs import RandomJob, draw_job, failing_jobs, modelled, random_jobs, reads_timestamps


def ran(job: RandomJob, form: str = "inlined", batch_size: int = 7) -> Ran:
    return run_form(partial(draw_job, job), form, batch_size=batch_size, **job.keys)


def sinks(ran: Ran, job: RandomJob) -> list[dict[int, list[Any]]]:
    """What reached each sink, subtask by subtask, in order, with timestamps if it reads them."""
    return [
        {
            subtask: [
                (value, time if reads_timestamps(number) else None) for value, time in records
            ]
            for subtask, records in ran.subtasks(str(number)).items()
        }
        for number in range(len(job.sinks))
    ]


def multisets(ran: Ran, job: RandomJob) -> list[Counter[Any]]:
    """What reached each sink; timestamps only where the model knows them and the sink reads them."""
    streams = modelled(job)
    return [
        Counter(
            zip(ran.records(str(number)), ran.timestamps(str(number)), strict=True)
            if _shows_times(number, streams[stream].knows_times)
            else ran.records(str(number))
        )
        for number, (stream, _) in enumerate(job.sinks)
    ]


def expected(job: RandomJob) -> list[Counter[Any]]:
    streams = modelled(job)
    return [
        Counter(
            streams[stream].records
            if _shows_times(number, streams[stream].knows_times)
            else [value for value, _ in streams[stream].records]
        )
        for number, (stream, _) in enumerate(job.sinks)
    ]


def _shows_times(number: int, knows_times: bool) -> bool:
    return knows_times and reads_timestamps(number)


@settings(max_examples=25)
@given(job=random_jobs())
def test_random_jobs_have_the_results_of_their_model_in_each_form(job: RandomJob) -> None:
    results = [ran(job, form) for form in FORMS]
    assert multisets(results[0], job) == expected(job)
    for other in results[1:]:
        assert sinks(other, job) == sinks(results[0], job)
        assert other.counters() == results[0].counters()


@settings(max_examples=12)
@given(job=random_jobs())
def test_the_batch_size_changes_no_result_of_random_jobs(job: RandomJob) -> None:
    for batch_size in (1, 4096):
        assert multisets(ran(job, batch_size=batch_size), job) == expected(job)


@settings(max_examples=12)
@given(job=random_jobs())
def test_a_second_run_of_a_random_job_gives_the_same_bytes(job: RandomJob) -> None:
    first, second = (pickle.dumps(sinks(ran(job), job)) for _ in range(2))
    assert first == second


@settings(max_examples=15)
@given(job=failing_jobs())
def test_errors_of_random_jobs_are_the_same_in_each_form(job: RandomJob) -> None:
    failures = [
        failure_of(partial(draw_job, job), form, batch_size=7, **job.keys) for form in FORMS
    ]
    assert {type(failure) for failure in failures} == {ZeroDivisionError}
    first, *others = [getattr(failure, "__notes__", []) for failure in failures]
    assert others == [first, first]
    assert any(note.startswith("in 'failing' (random_operators.py:") for note in first)
