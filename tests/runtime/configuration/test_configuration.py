"""Configuration converts values as Flink 2.3 does."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from opchain.runtime.configuration.configuration import Configuration
from opchain.runtime.configuration.options import ConfigOptions
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.time import Duration

INTERVAL = ConfigOptions.key("interval").duration_type().default_value(Duration.of_seconds(1))
TAGS = ConfigOptions.key("tags").map_type().default_value({"a": "1"})
CHAINING = (
    ConfigOptions.key("chaining.enabled").boolean_type().default_value(True)
).with_fallback_keys("chaining")


def filled() -> Configuration:
    configuration = Configuration().set_string("s", "hello").set_integer("i", 5)
    configuration.set_boolean("b", True).set_float("f", 1).set_bytearray("y", bytearray(b"\x01"))
    return configuration


def test_values_of_every_type_are_read_back() -> None:
    configuration = filled()
    assert configuration.get_string("s", "") == "hello"
    assert configuration.get_integer("i", 0) == 5
    assert configuration.get_boolean("b", False) is True
    assert configuration.get_float("f", 0.0) == 1.0
    assert configuration.get_bytearray("y", bytearray()) == bytearray(b"\x01")


def test_the_default_is_returned_for_a_key_that_is_not_set() -> None:
    configuration = Configuration()
    assert configuration.get_string("k", "x") == "x"
    assert configuration.get_string("k", None) is None  # type: ignore[arg-type]
    assert configuration.get_integer("k", 3) == 3
    assert configuration.get_boolean("k", True) is True
    assert configuration.get_float("k", 2) == 2.0
    assert configuration.get_bytearray("k", bytearray(b"x")) == bytearray(b"x")
    assert configuration.key_set() == set()


def test_values_are_converted_through_their_text() -> None:
    configuration = filled().set_string("n", "+7").set_string("t", "TRUE")
    assert configuration.get_integer("n", 0) == 7
    assert configuration.get_float("n", 0.0) == 7.0
    assert configuration.get_boolean("t", False) is True
    assert configuration.get_float("i", 0.0) == 5.0
    assert [configuration.get_string(key, "") for key in "bfiy"] == [
        "true",
        "1.0",
        "5",
        "!!binary |-\n  AQ==",
    ]


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda c: c.get_integer("s", 0), "key 's': 'hello' is not a whole number"),
        (lambda c: c.get_integer("f", 0), "key 'f': '1.0' is not a whole number"),
        (
            lambda c: c.get_boolean("i", False),
            "key 'i': '5' is not a boolean: expected true or false",
        ),
        (lambda c: c.get_float("s", 0.0), "key 's': 'hello' is not a number"),
        (lambda c: c.get_bytearray("s", bytearray()), "key 's' does not hold bytes"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_with_its_key(read: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        read(filled())


@pytest.mark.parametrize(
    "write",
    [
        lambda c: c.set_string("k", 5),
        lambda c: c.set_string(5, "v"),
        lambda c: c.set_string("k", None),
        lambda c: c.set_integer("k", True),
        lambda c: c.set_integer("k", "5"),
        lambda c: c.set_integer("k", None),
        lambda c: c.set_boolean("k", 1),
    ],
)
def test_set_refuses_a_value_of_another_type(write: Any) -> None:
    configuration = Configuration()
    with pytest.raises(TypeError, match=r"a configuration key must be a str|key 'k': expected"):
        write(configuration)
    assert configuration.key_set() == set()


def test_set_integer_refuses_a_value_beyond_64_bits() -> None:
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        Configuration().set_integer("k", 2**63)


def test_bytes_are_copied_in_and_out() -> None:
    given = bytearray(b"ab")
    configuration = Configuration().set_bytearray("k", given)
    given[0] = 0
    taken = configuration.get_bytearray("k", bytearray())
    taken[0] = 1
    assert configuration.get_bytearray("k", bytearray()) == bytearray(b"ab")


def test_from_dict_and_to_dict_use_strings() -> None:
    assert Configuration.from_dict({"b": "2", "a": "1"}).to_dict() == {"a": "1", "b": "2"}
    assert filled().to_dict() == {
        "b": "true",
        "f": "1.0",
        "i": "5",
        "s": "hello",
        "y": "!!binary |-\n  AQ==",
    }
    assert list(Configuration.from_dict({"b": "2", "a": "1"}).to_dict()) == ["a", "b"]


def test_add_all_to_dict_keeps_types() -> None:
    target: dict[str, Any] = {"i": 0, "other": 1}
    filled().add_all_to_dict(target)
    assert target == {"other": 1, "s": "hello", "i": 5, "b": True, "f": 1.0, "y": b"\x01"}


def test_add_all_adds_all_values_optionally_with_a_prefix() -> None:
    configuration = Configuration().set_string("s", "old")
    assert configuration.add_all(filled()) is configuration
    assert configuration.get_string("s", "") == "hello"
    prefixed = Configuration().add_all(Configuration.from_dict({"a": "1"}), "p.")
    assert prefixed.to_dict() == {"p.a": "1"}
    assert prefixed.add_all(prefixed, "p.").key_set() == {"p.a", "p.p.a"}


def test_remove_config_returns_true_once() -> None:
    configuration = filled()
    assert configuration.contains_key("s")
    assert configuration.remove_config("s")
    assert not configuration.remove_config("s")
    assert not configuration.contains_key("s")


def test_a_copy_is_independent() -> None:
    original = filled()
    for duplicate in (Configuration(original), copy.deepcopy(original), copy.copy(original)):
        assert duplicate == original
    Configuration(original).set_string("s", "changed")
    copy.deepcopy(original).set_string("s", "changed")
    assert original.get_string("s", "") == "hello"


def test_values_of_different_types_are_not_equal() -> None:
    assert Configuration().set_string("a", "1") != Configuration().set_integer("a", 1)
    assert Configuration().set_integer("a", 1) != Configuration().set_boolean("a", True)
    assert Configuration().set_integer("a", 1) != Configuration().set_float("a", 1.0)
    assert Configuration().set_integer("a", 1) == Configuration().set_integer("a", 1)
    assert hash(Configuration().set_integer("a", 1)) == hash(Configuration().set_integer("a", 1))
    assert Configuration() != {}


def test_a_configuration_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(filled())) == filled()


def test_secrets_are_not_in_the_repr() -> None:
    configuration = Configuration.from_dict({"my.Password": "x", "api-key": "y", "plain": "z"})
    assert str(configuration) == "{api-key=******, my.Password=******, plain=z}"
    assert repr(configuration) == f"Configuration({configuration})"
    assert configuration.to_dict()["api-key"] == "y"


def test_the_error_about_a_secret_option_does_not_show_its_value() -> None:
    with pytest.raises(ValueError, match="key 'api-key' is not a long") as caught:
        Configuration.from_dict({"api-key": "hunter2"}).get_integer("api-key", 0)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_option_is_set_and_read_with_its_type() -> None:
    configuration = Configuration()
    assert configuration.get(INTERVAL) == Duration.of_seconds(1)
    assert configuration.get(INTERVAL, Duration.of_seconds(9)) == Duration.of_seconds(9)
    assert not configuration.contains(INTERVAL)
    configuration.set(INTERVAL, Duration.of_millis(1500))
    assert configuration.get(INTERVAL) == Duration.of_millis(1500)
    assert configuration.contains(INTERVAL)
    assert configuration.to_dict() == {"interval": "1500 ms"}
    configuration.set_string("interval", "2 min")
    assert configuration.get(INTERVAL) == Duration.of_minutes(2)


def test_an_option_without_a_default_returns_none() -> None:
    option = ConfigOptions.key("x").string_type().no_default_value()
    assert Configuration().get(option) is None
    assert Configuration().get(option, "y") == "y"


def test_an_option_cannot_be_set_to_none() -> None:
    with pytest.raises(TypeError, match="key 'interval': the value is None"):
        Configuration().set(INTERVAL, None)  # type: ignore[arg-type]


def test_a_fallback_key_is_read_if_the_key_is_not_set() -> None:
    configuration = Configuration.from_dict({"chaining": "false"})
    assert configuration.get(CHAINING) is False
    assert configuration.contains(CHAINING)
    assert configuration.set_boolean("chaining.enabled", True).get(CHAINING) is True


def test_a_map_option_collects_keys_with_its_prefix() -> None:
    configuration = Configuration.from_dict({"tags.y": "2", "tags.x": "1", "tagsz": "3"})
    assert configuration.get(TAGS) == {"x": "1", "y": "2"}
    assert configuration.contains(TAGS)
    assert not configuration.contains_key("tags")
    assert configuration.set_string("tags", "own:1").get(TAGS) == {"own": "1"}


def test_the_default_of_an_option_cannot_be_changed_through_the_returned_value() -> None:
    Configuration().get(TAGS)["b"] = "2"
    assert Configuration().get(TAGS) == {"a": "1"}


def test_parse_list_value_of_no_text_is_empty() -> None:
    assert Configuration.parse_list_value(None) == Configuration.parse_list_value("") == []


@pytest.mark.parametrize("text", ["file:///a.jar;file:///b.jar", "[file:///a.jar, file:///b.jar]"])
def test_jars_are_read_as_a_list(text: str) -> None:
    jars = ["file:///a.jar", "file:///b.jar"]
    assert Configuration.parse_list_value(text) == jars
    assert Configuration().set_string("pipeline.jars", text).to_dict() == {"pipeline.jars": text}


def test_jars_are_read_in_the_format_of_flink_1() -> None:
    with pytest.warns(DeprecationWarning, match="use parse_list_value"):
        found = Configuration.parse_jars_value("file:///a.jar;file:///b.jar", object())
    assert found == ["file:///a.jar", "file:///b.jar"]


def test_j_configuration_accepts_a_configuration_and_shares_it() -> None:
    shared = Configuration().set_string("a", "1")
    Configuration(j_configuration=shared).set_integer("b", 2)
    assert shared.to_dict() == {"a": "1", "b": "2"}
    with pytest.raises(UnsupportedFeatureError, match=r"\(j_configuration=\.+\) belongs to"):
        Configuration(j_configuration=object())  # type: ignore[arg-type]
