from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment


def value(env: StreamExecutionEnvironment, key: str) -> str:
    return env.get_configuration().get_string(key, "")


def test_python_files_and_archives_of_several_calls_are_collected(
    env: StreamExecutionEnvironment,
) -> None:
    env.add_python_file("a.py")
    env.add_python_file("b.zip")
    env.add_python_archive("env.zip")
    env.add_python_archive("data.zip", "data")
    assert value(env, "python.files") == "a.py,b.zip"
    assert value(env, "python.archives") == "env.zip,data.zip#data"


def test_requirements_and_interpreter_are_set(env: StreamExecutionEnvironment) -> None:
    env.set_python_requirements("requirements.txt")
    assert value(env, "python.requirements") == "requirements.txt"
    env.set_python_requirements("requirements.txt", "wheels")
    env.set_python_executable("env.zip/bin/python")
    assert value(env, "python.requirements") == "requirements.txt#wheels"
    assert value(env, "python.executable") == "env.zip/bin/python"


def test_jars_and_class_paths_of_several_calls_are_collected(
    env: StreamExecutionEnvironment,
) -> None:
    env.add_jars("file:///a.jar", "file:///b.jar")
    env.add_jars("file:///c.jar")
    env.add_classpaths("file:///classes")
    read = env.get_configuration().parse_list_value
    assert read(value(env, "pipeline.jars")) == ["file:///a.jar", "file:///b.jar", "file:///c.jar"]
    assert read(value(env, "pipeline.classpaths")) == ["file:///classes"]


def test_cached_files_are_part_of_the_program(env: StreamExecutionEnvironment) -> None:
    env.register_cached_file("model.bin", "model")
    env.register_cached_file("model.bin", "model")
    env.register_cached_file("run.sh", "run", executable=True)
    assert env.program().cached_files == (
        ("model.bin", "model", False),
        ("run.sh", "run", True),
    )
    with pytest.raises(ValueError, match=r"the name 'model' already refers to 'model.bin'"):
        env.register_cached_file("other.bin", "model")


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("add_python_file", (None,)),
        ("add_python_archive", ("a.zip", 5)),
        ("set_python_requirements", (5,)),
        ("set_python_executable", (None,)),
        ("add_jars", ("a.jar", None)),
        ("register_cached_file", ("a", None)),
    ],
)
def test_paths_of_dependencies_must_be_strings(
    env: StreamExecutionEnvironment, call: str, arguments: Any
) -> None:
    with pytest.raises(TypeError, match=rf"{call}\(\) .* it must be a str"):
        getattr(env, call)(*arguments)
