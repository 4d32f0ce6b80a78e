from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.commands.submit import (
    DRIVER_PYTHON,
    PYTHON,
    Submission,
    command_text,
    configured,
    read_properties,
)


def test_the_spark_submit_command_has_only_the_given_options() -> None:
    lines = Submission(Path("app.py")).command(Path("spark-submit"))
    assert command_text(lines) == "spark-submit \\\n    app.py\n"


def test_spark_submit_options_precede_the_program_and_its_arguments() -> None:
    submission = Submission(
        program=Path("my app.py"),
        arguments=("--input", "a b"),
        master="spark://host:7077",
        deploy_mode="client",
        properties=Path("conf/spark-defaults.conf"),
        configuration={"spark.x": "1 2"},
        py_files=("one.zip", "two.zip"),
        archives=("env.zip#env",),
    )
    lines = submission.command(Path("spark-submit"))
    words = [word for line in lines for word in line]
    assert shlex.split(command_text(lines).replace("\\\n", "")) == words
    assert words[1:] == [
        *("--master", "spark://host:7077"),
        *("--deploy-mode", "client"),
        *("--properties-file", "conf/spark-defaults.conf"),
        *("--py-files", "one.zip,two.zip"),
        *("--archives", "env.zip#env"),
        *("--conf", "spark.x=1 2"),
        *("my app.py", "--input", "a b"),
    ]


def test_properties_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text("# spark.a 1\n\nspark.master   yarn\n  spark.b x y\nspark.flag\n", "utf-8")
    assert read_properties(tmp_path) == (
        file,
        {"spark.master": "yarn", "spark.b": "x y", "spark.flag": ""},
    )


def test_a_folder_without_properties_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"needs a file spark-defaults\.conf"):
        read_properties(tmp_path)


@pytest.mark.parametrize(
    ("given", "properties", "environment", "is_cluster_mode", "packed", "expected"),
    [
        ({}, {}, {}, False, None, {DRIVER_PYTHON: "here"}),
        ({"spark.x": "1"}, {}, {}, False, None, {DRIVER_PYTHON: "here", "spark.x": "1"}),
        (
            {},
            {},
            {},
            False,
            "./env/bin/python",
            {PYTHON: "./env/bin/python", DRIVER_PYTHON: "here"},
        ),
        ({}, {}, {}, True, "./env/bin/python", {PYTHON: "./env/bin/python"}),
        ({}, {}, {}, True, None, {}),
        ({DRIVER_PYTHON: "mine"}, {}, {}, False, None, {DRIVER_PYTHON: "mine"}),
        ({}, {DRIVER_PYTHON: "theirs"}, {}, False, None, {}),
        ({}, {}, {"PYSPARK_DRIVER_PYTHON": "p"}, False, None, {}),
        ({}, {PYTHON: "theirs"}, {}, True, "./env/bin/python", {}),
        ({}, {}, {"PYSPARK_PYTHON": "p"}, True, "./env/bin/python", {}),
    ],
)
def test_the_default_python_of_driver_and_executors_depends_on_the_deploy_mode(
    given: dict[str, str],
    properties: dict[str, str],
    environment: dict[str, str],
    is_cluster_mode: bool,
    packed: str | None,
    expected: dict[str, str],
) -> None:
    assert expected == configured(
        given,
        properties,
        environment,
        is_cluster_mode=is_cluster_mode,
        this_python="here",
        packed_python=packed,
    )
