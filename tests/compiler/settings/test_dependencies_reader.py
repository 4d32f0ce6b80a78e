from __future__ import annotations

from typing import Any

import pytest

from opchain.compiler.execution import job_dependencies
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.job.dependencies import (
    NO_DEPENDENCIES,
    CachedFile,
    JobDependencies,
    PythonArchive,
)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda env: None, NO_DEPENDENCIES),
        (
            lambda env: (env.add_python_file("a.py"), env.add_python_file("lib")),
            JobDependencies(python_files=("a.py", "lib")),
        ),
        (
            lambda env: (
                env.add_python_archive("/x/data.zip"),
                env.add_python_archive("env.tar.gz", "python"),
            ),
            JobDependencies(
                archives=(
                    PythonArchive("/x/data.zip", "data.zip"),
                    PythonArchive("env.tar.gz", "python"),
                )
            ),
        ),
        (
            lambda env: env.set_python_executable("python/bin/python3"),
            JobDependencies(python_executable="python/bin/python3"),
        ),
        (
            lambda env: env.set_python_requirements("r.txt", "cache"),
            JobDependencies(requirements="r.txt#cache"),
        ),
        (
            lambda env: (
                env.add_jars("file:///a.jar", "file:///b.jar"),
                env.add_classpaths("c.jar"),
            ),
            JobDependencies(jars=("file:///a.jar", "file:///b.jar", "c.jar")),
        ),
        (
            lambda env: env.register_cached_file("hdfs:///big", "big", executable=True),
            JobDependencies(cached_files=(CachedFile("hdfs:///big", "big"),)),
        ),
    ],
)
def test_job_dependencies_finds_files_jars_and_archives_of_the_program(
    call: Any, expected: JobDependencies
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    call(env)
    assert job_dependencies(env.program()) == expected
