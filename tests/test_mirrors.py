"""Every module has its tests in a file that mirrors its place, or says here where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent

ELSEWHERE = {
    "compiler/codegen/reduce.py": (
        "compiler/codegen/test_running_sum.py",
        "its code is what sums are, or are not, kept by; other reduces are in test_emitters.py",
    ),
    "compiler/codegen/place.py": (
        "compiler/codegen/test_vertex.py",
        "a value without behaviour, that emitters pass on",
    ),
    "compiler/graph/job_graph.py": (
        "compiler/passes/test_form_chains.py",
        "values without behaviour, made by one pass",
    ),
    "compiler/graph/plan.py": (
        "compiler/passes/test_pipeline.py",
        "the plan grows from pass to pass",
    ),
    "compiler/passes/rejections.py": (
        "compiler/passes/test_pipeline.py",
        "two names of exceptions; each refusal is tested where it is raised",
    ),
    "compiler/settings/job_settings.py": (
        "compiler/settings/test_settings_reader.py",
        "fields with defaults, which the reader fills",
    ),
    "runtime/checkpoint/positions.py": (
        "spark/streaming/test_streaming_job.py",
        "names, and a look-up by them",
    ),
    "runtime/checkpoint/recorded.py": (
        "runtime/epochs/test_recording.py",
        "values without behaviour",
    ),
    "runtime/functions/source.py": (
        "runtime/operators/test_source.py",
        "an abstract class without behaviour",
    ),
    "runtime/checkpoint/epoch.py": (
        "runtime/epochs/test_epoch_task.py",
        "values without behaviour",
    ),
    "runtime/epochs/epoch_input.py": (
        "runtime/epochs/test_epoch_task.py",
        "only a task's epoch has such an input",
    ),
    "runtime/epochs/local_epochs.py": (
        "runtime/epochs/test_epoch_task.py",
        "all tests of epochs run by it",
    ),
    "runtime/epochs/muted_sinks.py": (
        "runtime/epochs/test_replay.py",
        "what is muted is what a replay must not write",
    ),
    "runtime/epochs/task_contents.py": (
        "runtime/epochs/test_replay.py",
        "what is read is what a replay compares",
    ),
    "runtime/job/dependencies.py": (
        "compiler/settings/test_dependencies_reader.py",
        "values without behaviour, which the reader makes",
    ),
    "runtime/operators/specs": (
        "runtime/operators/test_specs.py",
        "one table shows the answers of all specs",
    ),
    "runtime/operators/windows/merging_window_operator.py": (
        "properties/test_windows.py",
        "it must give, in the same order, what the operator gives that it spares work",
    ),
    "runtime/spark/dataframe_ends.py": (
        "spark/test_dataframe_output.py",
        "what a job's DataFrames need is seen in jobs that have some",
    ),
    "runtime/spark/relayed_frames.py": (
        "spark/test_format_sink.py",
        "what is kept is what sinks of formats write",
    ),
    "runtime/spark/registration.py": (
        "spark/test_data_source.py",
        "what is registered is read there",
    ),
    "runtime/spark/streaming/adopt.py": (
        "spark/streaming/test_streaming_job.py",
        "what is adopted must run on",
    ),
    "runtime/spark/streaming/deliver.py": (
        "spark/streaming/test_streaming_job.py",
        "what is delivered is what a job reads",
    ),
    "runtime/spark/streaming/epoch_stages.py": (
        "spark/streaming/test_streaming_job.py",
        "only executors run it",
    ),
    "runtime/spark/streaming/epochs.py": (
        "spark/streaming/test_streaming_job.py",
        "an epoch is a part of a job",
    ),
    "runtime/spark/streaming/go_back.py": (
        "spark/streaming/test_streaming_job.py",
        "where a run goes back to shows in what it does next",
    ),
    "runtime/spark/streaming/settings.py": (
        "spark/streaming/test_streaming_job.py",
        "values without behaviour",
    ),
    "runtime/spark/streaming/streaming_run.py": (
        "spark/streaming/test_streaming_job.py",
        "the client of such a job",
    ),
    "runtime/records/elements.py": (
        "runtime/task/test_record_writer.py",
        "a tuple with names",
    ),
    "runtime/testing/standalone_cluster.py": (
        "spark/test_cluster.py",
        "what it starts must run jobs",
    ),
}
"""Module or folder: the file that tests it, and why it has none of its own."""

TOGETHER = {
    "compiler/dsl/test_typing.py": "the whole DSL under a type checker",
    "runtime/job/test_killed_job.py": "what sinks leave of a job whose process is killed",
    "runtime/operators/test_keyed_rich_functions.py": "keyed state in operators of several modules",
    "runtime/task/test_exchange.py": "writers, wire, gate and valves, end to end",
    "runtime/task/test_latency_markers.py": "markers on their way through a job",
}
"""Test files of several modules that none of them names."""

MODULES = [
    path.relative_to(ROOT)
    for half in ("compiler", "runtime")
    for path in sorted((ROOT / half).rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py")
]


def mirror(module: Path) -> Path:
    """Where the tests of a module belong; those of runtime/spark stand apart, since they need Java."""
    folder = module.parent
    if folder.parts[:2] == ("runtime", "spark"):
        folder = Path(*folder.parts[1:])
    return folder / f"test_{module.name}"


def shorter(test_file: Path) -> list[Path]:
    """The files with fewer words in their names."""
    words = test_file.stem.split("_")
    return [test_file.with_name("_".join(words[:n]) + ".py") for n in range(2, len(words))]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.as_posix())
def test_a_module_has_its_test_file(module: Path) -> None:
    excused = {module.as_posix(), module.parent.as_posix()} & ELSEWHERE.keys()
    assert (TESTS / mirror(module)).is_file() is not bool(excused)


@pytest.mark.parametrize("test_file", TOGETHER)
def test_a_test_file_of_several_modules_exists(test_file: str) -> None:
    assert (TESTS / test_file).is_file()


@pytest.mark.parametrize("place", ELSEWHERE)
def test_an_excuse_is_true(place: str) -> None:
    test_file, reason = ELSEWHERE[place]
    assert (ROOT / place).exists()
    assert (TESTS / test_file).is_file()
    assert reason


def test_a_test_file_mirrors_a_module_that_exists() -> None:
    """A module that is renamed takes its tests with it; `test_gate_ends.py` is more tests of `gate.py`."""
    mirrors = {mirror(module) for module in MODULES}
    mirrors |= {path.parent / f"test_{path.parent.name}.py" for path in mirrors}
    others = {Path(test_file) for test_file, _ in ELSEWHERE.values()} | set(map(Path, TOGETHER))
    strays = sorted(
        path.relative_to(TESTS).as_posix()
        for half in ("compiler", "runtime")
        for path in (TESTS / half).rglob("test_*.py")
        if path.relative_to(TESTS) not in mirrors | others
        and not any(part in mirrors for part in shorter(path.relative_to(TESTS)))
    )
    assert strays == []
