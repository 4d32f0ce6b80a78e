from __future__ import annotations

from typing import Any

import pytest

from opchain.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions
from opchain.runtime.errors import UnsupportedFeatureError

Builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder


def test_getters_of_connection_options_return_what_was_set() -> None:
    options = (
        Builder()
        .with_url("jdbc:postgresql://localhost/books")
        .with_driver_name("org.postgresql.Driver")
        .with_user_name("ada")
        .with_password("secret")
        .build()
    )
    assert options.get_db_url() == "jdbc:postgresql://localhost/books"
    assert options.get_driver_name() == "org.postgresql.Driver"
    assert (options.get_user_name(), options.get_password()) == ("ada", "secret")
    assert "secret" not in repr(options)


def test_another_driver_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"oracle.*supports only PostgreSQL, MySQL"):
        Builder().with_driver_name("oracle.jdbc.OracleDriver")


def test_options_without_url_are_refused() -> None:
    with pytest.raises(ValueError, match="have no URL"):
        Builder().build()


def test_execution_options_have_the_defaults_of_flink() -> None:
    defaults = JdbcExecutionOptions.defaults()
    assert defaults.get_batch_size() == 5000
    assert defaults.get_batch_interval_ms() == 0
    assert defaults.get_max_retries() == 3
    builder = JdbcExecutionOptions.builder().with_batch_size(7).with_batch_interval_ms(8)
    built = builder.with_max_retries(0).build()
    assert (built.batch_size, built.batch_interval_ms, built.max_retries) == (7, 8, 0)


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("with_batch_size", 0),
        ("with_batch_size", True),
        ("with_batch_interval_ms", -1),
        ("with_max_retries", "3"),
    ],
)
def test_invalid_batch_sizes_intervals_and_retries_are_refused(call: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{call} got {value!r}"):
        getattr(JdbcExecutionOptions.builder(), call)(value)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://localhost/books?user=ada&password=hush",
        "jdbc:postgresql://localhost/books?sslpassword=hush&sslmode=require",
        "postgresql://ada:hush@localhost/books",
        "postgresql://ada:hu%40sh@localhost/books?password=hush",
    ],
)
def test_a_password_in_the_url_is_not_shown(url: str) -> None:
    options = Builder().with_url(url).build()
    assert options.get_db_url() == url
    for text in (repr(options), str(options)):
        assert "hush" not in text
        assert "hu%40sh" not in text
        assert "localhost/books" in text
