"""The storage of checkpoints and the file system of outputs, in memory. Every call is a step of the scheduler."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.storage import CheckpointStorage
from opchain.runtime.files.file_systems import FileStatus, FileSystem, FolderContent, joined

if TYPE_CHECKING:
    from simulated_scheduler import Scheduler

CHECKPOINTS = "simulated://checkpoints"
OUTPUT = "simulated://output"
STAGING = "simulated://staging"


class SimulatedStorage(CheckpointStorage):
    """A folder of checkpoints.

    Args:
        world: Schedules the calls.
        files: The content of all files, by name below CHECKPOINTS.
        url: The folder.
    """

    def __init__(self, world: Scheduler, files: dict[str, bytes], url: str = CHECKPOINTS) -> None:
        self.url = url
        self._world, self._files = world, files
        self._start = f"{url}/"[len(CHECKPOINTS) + 1 :]

    def write(self, name: str, data: bytes) -> None:
        path = self._start + name
        self._world.call(f"write {path}", lambda: self._files.update({path: data}), changes=True)

    def publish(self, name: str, data: bytes) -> None:
        path = self._start + name

        def publish() -> None:
            if path in self._files:
                raise FileExistsError(path)
            self._files[path] = data

        self._world.call(f"publish {path}", publish, changes=True)

    def read(self, name: str) -> bytes:
        path = self._start + name

        def read() -> bytes:
            if path not in self._files:
                raise FileNotFoundError(path)
            return self._files[path]

        found: bytes = self._world.call(f"read {path}", read, changes=False)
        return found

    def names(self, prefix: str = "") -> list[str]:
        start = self._start + (f"{prefix}/" if prefix else "")
        found: list[str] = self._world.call(
            f"names {start}", lambda: sorted(self._below(start)), changes=False
        )
        return [name[len(self._start) :] for name in found]

    def children(self, folder: str = "") -> list[str]:
        start = self._start + (f"{folder}/" if folder else "")
        found: list[str] = self._world.call(
            f"children {start}",
            lambda: sorted({name[len(start) :].partition("/")[0] for name in self._below(start)}),
            changes=False,
        )
        return found

    def delete(self, name: str) -> None:
        path = self._start + name
        self._world.call(f"delete {path}", lambda: self._files.pop(path, None), changes=True)

    def _below(self, start: str) -> list[str]:
        return [name for name in self._files if name.startswith(start)]


class SimulatedFiles(FileSystem):
    """A file system; `complete` makes a file show under its name.

    Attributes:
        files: The content of the files by path.
    """

    def __init__(self, world: Scheduler) -> None:
        self.files: dict[str, bytes] = {}
        self._world = world
        self._open: dict[int, str] = {}

    def status(self, path: str) -> FileStatus | None:
        found: FileStatus | None = self._world.call(
            f"status {path}",
            lambda: FileStatus(path, len(self.files[path])) if path in self.files else None,
            changes=False,
        )
        return found

    def content(self, folder: str) -> FolderContent | None:
        def look() -> FolderContent | None:
            below = [path for path in self.files if path.startswith(f"{folder}/")]
            own = [path for path in below if "/" not in path[len(folder) + 1 :]]
            files = [FileStatus(path, len(self.files[path])) for path in sorted(own)]
            return FolderContent(files, []) if below else None

        found: FolderContent | None = self._world.call(f"list {folder}", look, changes=False)
        return found

    def matches(self, pattern: str) -> list[str]:
        raise NotImplementedError(pattern)

    def open_input(self, path: str) -> BytesIO:
        def read() -> bytes:
            if path not in self.files:
                raise FileNotFoundError(path)
            return self.files[path]

        return BytesIO(self._world.call(f"open {path}", read, changes=False))

    def create(self, path: str) -> Any:
        self._world.call(f"create {path}", lambda: None, changes=True)
        stream = BytesIO()
        self._open[id(stream)] = path
        return stream

    def make_folder(self, path: str) -> None:
        """Folders are no more than parts of names."""

    def complete(self, stream: Any) -> None:
        path, data = self._open[id(stream)], stream.getvalue()
        self._world.call(f"complete {path}", lambda: self.files.update({path: data}), changes=True)
        del self._open[id(stream)]
        stream.close()

    def delete(self, path: str) -> None:
        def delete() -> None:
            if self.files.pop(path, None) is None:
                raise FileNotFoundError(path)

        self._world.call(f"delete {path}", delete, changes=True)

    def move(self, path: str, target: str) -> None:
        def move() -> None:
            if path not in self.files:
                raise FileNotFoundError(path)
            assert target not in self.files, f"{target} is overwritten"
            self.files[target] = self.files.pop(path)

        self._world.call(f"move {joined(target)}", move, changes=True)

    def touch(self, path: str) -> None:
        self._world.call(f"touch {path}", lambda: self.files.setdefault(path, b""), changes=True)
