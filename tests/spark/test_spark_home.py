from __future__ import annotations

from pathlib import Path

import pytest

from opchain.runtime.errors import SparkUnavailableError
from opchain.runtime.spark import session as module
from opchain.runtime.spark.session import spark_home


def test_the_environment_variable_spark_home_takes_precedence(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    assert spark_home({"SPARK_HOME": str(tmp_path)}) == tmp_path


def test_a_folder_without_spark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailableError, match="but it has no folder bin"):
        spark_home({"SPARK_HOME": str(tmp_path)})


def test_without_the_variable_the_installed_pyspark_is_used() -> None:
    pyspark = pytest.importorskip("pyspark")
    assert spark_home({}) == Path(pyspark.__file__).parent
    assert (spark_home({}) / "bin" / "spark-submit").is_file()


def test_the_error_about_a_missing_spark_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(SparkUnavailableError, match="pip install 'opchain\\[spark\\]'"):
        spark_home({})
