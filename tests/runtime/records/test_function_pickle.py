from __future__ import annotations

import linecache
import pickle
import subprocess
import sys
from functools import cache, lru_cache, singledispatch
from typing import Any

import cloudpickle
import pytest

from opchain.compiler.dsl.captured_functions import captured
from opchain.runtime.records.function_pickle import dump_functions


def _with_inner_function() -> object:
    return lambda x: lambda y: x + y


@pytest.mark.parametrize("copied", [lambda f: pickle.loads(dump_functions(f)), captured])
def test_a_pickled_function_keeps_its_file_name(copied: object) -> None:
    function = copied(_with_inner_function())  # type: ignore[operator]
    assert function.__code__.co_filename == __file__
    assert function(1).__code__.co_filename == __file__
    assert "lambda" in linecache.getline(
        function.__code__.co_filename, function.__code__.co_firstlineno
    )
    assert function(1)(2) == 3


@singledispatch
def described(value: object) -> str:
    return f"some {value}"


@described.register
def _(value: list) -> str:  # type: ignore[type-arg]
    return f"list of {', '.join(map(described, value))}"


def _by_value(value: object) -> Any:
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return pickle.loads(dump_functions(value))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def test_cached_properties_of_classes_are_pickled_by_value() -> None:
    program = (
        "import sys\n"
        "from functools import cached_property\n"
        "from opchain.runtime.records.function_pickle import dump_functions\n"
        "class Named:\n"
        "    def __init__(self, name):\n"
        "        self.name, self.made = name, []\n"
        "    @cached_property\n"
        "    def label(self):\n"
        "        'The name, in capitals.'\n"
        "        self.made.append(self.name)\n"
        "        return self.name.upper()\n"
        "sys.stdout.buffer.write(dump_functions(Named))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    kind = pickle.loads(done.stdout)
    one, two = kind("a"), kind("b")
    assert (one.label, one.label, two.label) == ("A", "A", "B")
    assert (one.made, two.made) == (["a"], ["b"])
    assert kind.label.__doc__ == "The name, in capitals."


def test_singledispatch_functions_are_pickled_by_value() -> None:
    assert described([1]) == "list of some 1"  # fills the cache
    loaded = _by_value(described)
    assert loaded is not described
    assert loaded([1, [2]]) == "list of some 1, list of some 2"
    loaded.register(int, lambda value: f"int {value}")
    assert (loaded([1]), described([1])) == ("list of int 1", "list of some 1")


@lru_cache(maxsize=5, typed=True)
def fibonacci(number: int) -> int:
    """The Fibonacci numbers."""
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def test_lru_cache_functions_are_pickled_by_value_if_they_cannot_be_imported() -> None:
    assert pickle.loads(dump_functions(fibonacci)) is fibonacci
    loaded = _by_value(fibonacci)
    assert loaded is not fibonacci
    assert loaded.cache_parameters() == {"maxsize": 5, "typed": True}
    assert loaded.__doc__ == fibonacci.__doc__
    assert loaded(30) == 832_040
    assert loaded.cache_info().hits > 20  # the function calls itself through the cache

    @cache
    def doubled(number: int) -> int:
        return number * 2

    assert pickle.loads(dump_functions(doubled))(4) == 8


def test_registered_classes_are_pickled_by_value() -> None:
    program = (
        "import cloudpickle, pickle, sys\n"
        "from opchain.runtime.records.function_pickle import dump_functions\n"
        "class Add:\n"
        "    def add(self, x):\n"
        "        return x + 1\n"
        "sys.stdout.buffer.write(dump_functions(Add()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = pickle.loads(done.stdout)
    assert loaded.add(1) == 2
    assert loaded.add.__code__.co_filename == "<string>"
    assert cloudpickle.loads(done.stdout).add(2) == 3
