"""What a program brings along: Python files, archives, requirements, jars, cached files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.dsl.environment_settings import EnvironmentSettings

if TYPE_CHECKING:
    from opchain.runtime.configuration.configuration import Configuration

_FILES = "python.files"
_ARCHIVES = "python.archives"
_BETWEEN_FILES = ","
_BETWEEN_PARAMETERS = "#"


class EnvironmentDependencies(EnvironmentSettings):
    """Files that executors need. They are sent with Spark; nothing is loaded when they are named."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        super().__init__(configuration)
        self._cached_files: dict[str, tuple[str, str, bool]] = {}

    def add_python_file(self, file_path: str) -> None:
        """Puts a .py file, a package folder or a zip on the executors' Python path."""
        self._append(_FILES, checked(file_path, str, "add_python_file", "the path"))

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Names a requirements.txt that executors install, maybe from a folder of packages."""
        call = "set_python_requirements"
        checked(requirements_file_path, str, call, "the path")
        self._configuration.set_string(
            "python.requirements", _joined(requirements_file_path, requirements_cache_dir, call)
        )

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpacks an archive for the executors, into `target_dir` or a folder of its own name."""
        checked(archive_path, str, "add_python_archive", "the path")
        self._append(_ARCHIVES, _joined(archive_path, target_dir, "add_python_archive"))

    def set_python_executable(self, python_exec: str) -> None:
        """Sets the executors' Python interpreter."""
        checked(python_exec, str, "set_python_executable", "the path")
        self._configuration.set_string("python.executable", python_exec)

    def add_jars(self, *jars_path: str) -> None:
        """Adds jars, such as a JDBC driver, to the Spark application."""
        self._extend("pipeline.jars", jars_path, "add_jars")

    def add_classpaths(self, *classpaths: str) -> None:
        """Adds URLs to the class path of the Spark application."""
        self._extend("pipeline.classpaths", classpaths, "add_classpaths")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Copies a file or folder to every executor, where functions find it under a name.

        Raises:
            ValueError: The name is taken by another file.
        """
        for what, value in (("the path", file_path), ("the name", name)):
            checked(value, str, "register_cached_file", what)
        entry = (file_path, name, executable)
        known = self._cached_files.setdefault(name, entry)
        if known != entry:
            raise ValueError(
                f"{at_call('register_cached_file')}: the name '{name}' already refers to "
                f"{known[0]!r}; choose another name for {file_path!r}"
            )

    def _append(self, key: str, path: str) -> None:
        known = self._configuration.get_string(key, "")
        self._configuration.set_string(key, f"{known}{_BETWEEN_FILES}{path}" if known else path)

    def _extend(self, key: str, paths: tuple[str, ...], call: str) -> None:
        for path in paths:
            checked(path, str, call, "a path")
        known = self._configuration.parse_list_value(self._configuration.get_string(key, ""))
        self._configuration.set_string(key, ";".join([*known, *paths]))


def _joined(path: str, second: str | None, call: str) -> str:
    if second is None:
        return path
    return f"{path}{_BETWEEN_PARAMETERS}{checked(second, str, call, 'the folder')}"
