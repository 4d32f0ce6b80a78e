from __future__ import annotations

import pytest

from opchain.runtime.connectors.jdbc.options import JdbcConnectionOptions, connection_parameters
from opchain.runtime.errors import UnsupportedFeatureError


@pytest.mark.parametrize(
    ("url", "parameters"),
    [
        ("jdbc:postgresql:books", {"dbname": "books"}),
        ("jdbc:postgresql:/", {}),
        ("jdbc:postgresql://h/", {"host": "h", "port": "5432"}),
        ("jdbc:postgresql://h:1/b%20c", {"host": "h", "port": "1", "dbname": "b c"}),
        ("jdbc:postgresql://[::1]:2/b", {"host": "::1", "port": "2", "dbname": "b"}),
        ("jdbc:postgresql://g:1,h/b", {"host": "g,h", "port": "1,5432", "dbname": "b"}),
        (
            "jdbc:postgresql:b?user=u&sslmode=require&ApplicationName=a&prepareThreshold=1",
            {"dbname": "b", "user": "u", "sslmode": "require", "application_name": "a"},
        ),
        (
            "jdbc:postgresql:b?currentSchema=one,two",
            {"dbname": "b", "options": "-csearch_path=one,two"},
        ),
        ("postgresql://u@h/b", {"conninfo": "postgresql://u@h/b"}),
    ],
)
def test_a_jdbc_url_becomes_connection_parameters_of_libpq(
    url: str, parameters: dict[str, str]
) -> None:
    assert connection_parameters(JdbcConnectionOptions(url)) == parameters


def test_user_and_password_of_the_options_override_the_url() -> None:
    options = JdbcConnectionOptions("jdbc:postgresql:b?user=u", None, "v", "secret")
    assert connection_parameters(options) == {"dbname": "b", "user": "v", "password": "secret"}


def test_a_url_of_another_database_is_refused_and_the_error_hides_passwords() -> None:
    url = "jdbc:mysql://root:secret@host/db"
    with pytest.raises(UnsupportedFeatureError, match="begins with 'jdbc:mysql'") as refused:
        connection_parameters(JdbcConnectionOptions(url))
    assert "secret" not in str(refused.value)


def test_a_user_in_the_authority_is_refused_and_the_error_hides_the_password() -> None:
    with pytest.raises(
        ValueError, match=r"call with_user_name\(\) and with_password\(\)"
    ) as refused:
        connection_parameters(JdbcConnectionOptions("jdbc:postgresql://ada:secret@host/db"))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("jdbc:postgresql:b?targetServerType=any", "targetServerType"),
        ("jdbc:postgresql://h:x/b", "h:x"),
    ],
)
def test_the_error_names_an_unknown_part_of_the_url(url: str, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        connection_parameters(JdbcConnectionOptions(url))
