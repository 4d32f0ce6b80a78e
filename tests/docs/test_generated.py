"""The generated pages of the reference are up to date with the code."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

import pytest
from page_blocks import DOCS

from opchain.compiler.settings.job_settings import JobSettings
from opchain.compiler.settings.settings_reader import key_of
from opchain.datastream.connectors.file_system import FileCompactor
from opchain.datastream.formats.json import JsonRowDeserializationSchema
from opchain.runtime.errors import StreamError, UnsupportedFeatureError

if TYPE_CHECKING:
    from types import ModuleType

NAMES = ["support.md", "settings.md", "commands.md", "errors.md"]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_reference_pages_are_up_to_date(name: str, generate: ModuleType) -> None:
    page = (DOCS / "reference" / name).read_text("utf-8")
    assert page == generate.render(name), "run: python docs/generate.py"


def test_every_generated_page_is_compared(generate: ModuleType) -> None:
    assert list(generate.PAGES) == NAMES


def test_every_setting_is_described(generate: ModuleType) -> None:
    page = generate.settings_page()
    for name, field in JobSettings.model_fields.items():
        assert f"`{key_of(name)}`" in page
        assert field.description, name


def test_every_public_error_class_is_documented_with_what_to_do(generate: ModuleType) -> None:
    page = generate.errors_page()
    for name, module, parent, text in generate.error_classes():
        kind = getattr(importlib.import_module(module), name)
        assert issubclass(kind, StreamError)
        assert parent in {base.__name__ for base in kind.__mro__}
        assert f"\n{generate.WHAT_TO_DO}" in text, name
        assert f"\n## {name}\n" in page


def test_the_errors_of_all_folders_are_listed(generate: ModuleType) -> None:
    names = {name for name, *_ in generate.error_classes()}
    assert {"StreamError", "JobGraphError", "KafkaConnectorError", "MalformedMessageError"} <= names
    assert "InputRestoredError" not in names


def test_refused_methods_of_builders_are_in_the_support_table(generate: ModuleType) -> None:
    refused = {item for _, _, found in generate.api() for item in found}
    with pytest.raises(UnsupportedFeatureError):
        FileCompactor.identical_file_compactor()
    with pytest.raises(UnsupportedFeatureError):
        JsonRowDeserializationSchema.builder().json_schema("{}")
    assert {
        "FileCompactor.identical_file_compactor",
        "JsonRowDeserializationSchema.Builder.json_schema",
    } <= refused
