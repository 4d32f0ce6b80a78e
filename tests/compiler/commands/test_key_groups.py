from typing import Any

import pytest


def rows(text: str) -> list[list[str]]:
    return [[cell for cell in line.split("  ") if cell] for line in text.splitlines()]


def test_key_groups_and_subtasks_of_keys_equal_pyflinks(run: Any) -> None:
    done = run("key-groups", "hello", "42", "--max-parallelism", 128, "--parallelism", 4)
    assert done.exit_code == 0
    assert [[cell.strip() for cell in row] for row in rows(done.stdout)] == [
        ["key", "type", "hash code", "key group", "subtask"],
        ["'hello'", "str", "-177558165", "82", "2"],
        ["42", "int", "-89359097", "64", "2"],
    ]


def test_the_default_number_of_key_groups_depends_on_the_parallelism(run: Any) -> None:
    derived = run("key-groups", "a", "--parallelism", 100).stdout
    assert derived == run("key-groups", "a", "--parallelism", 100, "--max-parallelism", 256).stdout


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("'42'", "str"),
        ("4.5", "float"),
        ("True", "bool"),
        ("(1, 'a')", "tuple"),
        ("b'x'", "bytes"),
        ("user-42", "str"),
        ("", "str"),
    ],
)
def test_a_key_is_a_python_literal_or_else_a_string(key: str, kind: str, run: Any) -> None:
    done = run("key-groups", key)
    assert rows(done.stdout)[1][1].strip() == kind


def test_option_type_sets_the_key_type(run: Any) -> None:
    assert "  61  " in run("key-groups", "--type", "Integer", "--", "-1").stdout
    assert "  62  " in run("key-groups", "--type", "Long", "--", "-1").stdout
    assert "  Long  " in run("key-groups", "--type", "long", "1").stdout
    assert "'42'" in run("key-groups", "42", "--type", "String").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--type", "Integer"], "not a value of the key type Integer"),
        (["x", "--parallelism", "9", "--max-parallelism", "8"], "--max-parallelism is 8"),
        (["x", "--parallelism", "0"], "0 is not in the range"),
        ([], "missing argument 'KEY...'"),
    ],
)
def test_key_groups_refuses_values_that_are_not_of_the_key_type(
    arguments: list[str], message: str, run: Any
) -> None:
    done = run("key-groups", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
