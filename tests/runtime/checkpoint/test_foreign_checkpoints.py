"""Checkpoints of an attacker: no path leaves the directory, and with a key nothing is unpickled."""

from __future__ import annotations

import base64
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crash_runs import BATCHES, CrashRun
from planted import planted_pickle

from opchain.runtime.checkpoint.checkpoint_key import (
    CheckpointKey,
    CheckpointKeyError,
    read_key,
)
from opchain.runtime.checkpoint.coordinator import drop_checkpoint
from opchain.runtime.checkpoint.fall_back import fall_back, replaced_checkpoint
from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    TaskMetadata,
    encode,
    latest_checkpoint,
    metadata_name,
    read_metadata,
)
from opchain.runtime.checkpoint.savepoint import (
    OFFSETS,
    find_checkpoint,
    problems_of,
    write_savepoint,
)
from opchain.runtime.checkpoint.state_files import TaskState, write_task_state
from opchain.runtime.checkpoint.storage import StoredFile, checkpoint_storage, checksum
from opchain.runtime.errors import CorruptCheckpointError
from opchain.runtime.state.operator_snapshot import OperatorSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.checkpoint.storage import CheckpointStorage

NAMES = (
    "/tmp/absolute",  # noqa: S108 - nothing is written there
    "../victim",
    "shared/../../victim",
    "shared/1/../../../victim",
    "shared/1/..",
    "shared/1/./a",
    "shared//a",
    "shared/1/a/b",
    "shared/1/a\\..\\b",
    "shared/1/a\0b",
    "shared/x/a",
    "spark/offsets/0",
    "lineage",
    "",
)
KEY = CheckpointKey.of(b"a key of at least sixteen bytes")


def foreign(storage: CheckpointStorage, name: str, content: bytes = b"mine") -> None:
    """A checkpoint whose metadata names a file."""
    file = StoredFile(name, len(content), checksum(content))
    task = TaskMetadata(0, "v", 0, TaskState(0, 1, (file,)))
    metadata = CheckpointMetadata(1, 0, "j", "r", tasks=(task,))
    storage.publish(metadata_name(1), encode(metadata))


@pytest.mark.parametrize("name", NAMES)
def test_metadata_with_a_path_that_leaves_the_directory_is_refused(
    any_storage: CheckpointStorage, name: str
) -> None:
    foreign(any_storage, name)
    with pytest.raises(CorruptCheckpointError, match=r"names .* as a file of the checkpoint"):
        read_metadata(any_storage, 1)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("", "lineage")][:9])
def test_no_storage_method_leaves_its_directory(any_storage: CheckpointStorage, name: str) -> None:
    if name == "shared/1/a/b":
        pytest.skip("a folder more is no way out")
    calls: list[Callable[[], Any]] = [
        lambda: any_storage.write(name, b""),
        lambda: any_storage.publish(name, b""),
        lambda: any_storage.read(name),
        lambda: any_storage.names(name),
        lambda: any_storage.children(name),
        lambda: any_storage.delete(name),
        lambda: any_storage.put(name, b""),
        lambda: any_storage.get(StoredFile(name, 0, "")),
    ]
    for call in calls:
        with pytest.raises(CorruptCheckpointError, match="does not lead to a file below"):
            call()


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_bytes(b"mine")
    return file


@pytest.mark.parametrize("name", ["../victim", "shared/1/../../../victim", "{}"])
def test_a_savepoint_of_a_foreign_checkpoint_writes_nothing_outside_its_target(
    tmp_path: Path, victim: Path, name: str
) -> None:
    storage = checkpoint_storage(str(tmp_path / "source"))
    foreign(storage, name.format(victim))
    target = tmp_path / "deep" / "target"
    with pytest.raises(CorruptCheckpointError):
        write_savepoint(find_checkpoint(storage.url), str(target))
    assert not target.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "victim"]


def test_dropping_a_foreign_checkpoint_deletes_nothing_outside_its_directory(
    tmp_path: Path, victim: Path
) -> None:
    storage = checkpoint_storage(str(tmp_path / "source"))
    file = StoredFile(str(victim), 4, checksum(b"mine"))
    task = TaskMetadata(0, "v", 0, TaskState(0, 1, (file,)))
    with pytest.raises(CorruptCheckpointError):
        drop_checkpoint(storage, CheckpointMetadata(1, 0, "j", "r", tasks=(task,)), [])
    assert victim.read_bytes() == b"mine"


def test_symbolic_links_inside_the_directory_are_not_followed(tmp_path: Path, victim: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"mine")
    root = tmp_path / "source"
    (root / "shared").mkdir(parents=True)
    (root / "shared" / "1").symlink_to(outside)
    (root / OFFSETS).mkdir()
    (root / OFFSETS / "metadata").symlink_to(victim)
    storage = checkpoint_storage(str(root))
    foreign(storage, "shared/1/file")
    calls: list[Callable[[], Any]] = [
        lambda: storage.read("shared/1/file"),
        lambda: storage.write("shared/1/new", b"x"),
        lambda: storage.delete("shared/1/file"),
        lambda: storage.children("shared/1/file"),
        lambda: drop_checkpoint(storage, read_metadata(storage, 1), []),
        lambda: storage.read(f"{OFFSETS}/metadata"),
    ]
    for call in calls:
        with pytest.raises(CorruptCheckpointError, match="symbolic link leads from it"):
            call()
    assert [path.name for path in outside.iterdir()] == ["file"]
    (root / "shared" / "1").unlink()
    storage.write("shared/1/file", b"mine")
    foreign(checkpoint_storage(str(tmp_path / "other")), "shared/1/file")
    storage.write(metadata_name(1), (tmp_path / "other" / metadata_name(1)).read_bytes())
    with pytest.raises(CorruptCheckpointError, match=r"symbolic link leads from it to .*victim"):
        write_savepoint(find_checkpoint(storage.url), str(tmp_path / "target"))


def test_the_checkpoint_directory_itself_may_be_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    storage = checkpoint_storage(str(tmp_path / "link"))
    storage.write("shared/1/file", b"x")
    assert storage.read("shared/1/file") == b"x"


def test_metadata_of_another_checkpoint_is_refused(any_storage: CheckpointStorage) -> None:
    metadata = CheckpointMetadata(7, 0, "j", "r")
    any_storage.publish(metadata_name(3), encode(metadata))
    with pytest.raises(CorruptCheckpointError, match="is the metadata of checkpoint 7"):
        read_metadata(any_storage, 3)


def test_only_the_user_can_read_the_files(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        storage = checkpoint_storage(str(tmp_path / "parent" / "checkpoints"))
        storage.write("shared/1/a", b"x")
        storage.publish("chk-1/_metadata", b"x")
    finally:
        os.umask(before)
    root = tmp_path / "parent" / "checkpoints"
    for name in ("shared/1/a", "chk-1/_metadata"):
        assert (root / name).stat().st_mode & 0o777 == 0o600
    assert root.stat().st_mode & 0o777 == 0o700
    assert root.parent.stat().st_mode & 0o777 == 0o755


def signed(tmp_path: Path, key: CheckpointKey | None = KEY) -> CheckpointStorage:
    """A directory with a checkpoint that was signed with a key."""
    storage = checkpoint_storage(str(tmp_path / "checkpoints"), key)
    state = write_task_state(storage, 1, 0, "0", {"a": OperatorSnapshot({0: b"x"})})
    metadata = CheckpointMetadata(1, 0, "j", "r", tasks=(TaskMetadata(0, "v", 0, state),))
    storage.publish(metadata_name(1), encode(metadata, key))
    return storage


def test_a_signed_checkpoint_is_read_with_its_key_only(tmp_path: Path) -> None:
    storage = signed(tmp_path)
    assert problems_of(find_checkpoint(storage.url, KEY)) == []
    with pytest.raises(CheckpointKeyError, match=f"signed by the key '{KEY.identity}', but no key"):
        find_checkpoint(storage.url)
    other = CheckpointKey.of(b"another key of sixteen bytes")
    with pytest.raises(
        CheckpointKeyError, match=f"signed by the key .* has the key {other.identity}"
    ):
        find_checkpoint(storage.url, other)


def test_an_unsigned_checkpoint_is_refused_with_a_key(tmp_path: Path) -> None:
    storage = signed(tmp_path, None)
    with pytest.raises(CheckpointKeyError, match=r"is not signed.*--sign-with KEY-FILE"):
        find_checkpoint(storage.url, KEY)


@pytest.mark.parametrize("part", ["rest", "epoch", "files", "job_name"])
def test_altered_metadata_is_detected_although_its_checksum_matches(
    tmp_path: Path, part: str
) -> None:
    storage = signed(tmp_path)
    path = Path(storage.url, metadata_name(1))
    document = json.loads(path.read_bytes())
    (task,) = document["checkpoint"]["tasks"]
    if part == "rest":
        task["rest"] = base64.b64encode(planted_pickle(tmp_path / "ran")).decode()
    elif part == "files":
        task["state"]["files"][0]["checksum"] = checksum(b"")
    else:
        document["checkpoint"][part] = 2 if part == "epoch" else "other"
    text = json.dumps(document["checkpoint"], sort_keys=True, separators=(",", ":"))
    document["checksum"] = checksum(text.encode())
    path.write_text(json.dumps(document))
    with pytest.raises(CorruptCheckpointError, match="was altered"):
        find_checkpoint(storage.url, KEY)


def test_an_altered_state_file_is_detected(tmp_path: Path) -> None:
    storage = signed(tmp_path)
    (file,) = find_checkpoint(storage.url, KEY).metadata.files.values()
    assert file.checksum not in (checksum(storage.read(file.name)), KEY.secret.hex())
    Path(storage.url, file.name).write_bytes(b"y" * file.size)
    with pytest.raises(CorruptCheckpointError, match="was altered"):
        storage.get(file)


def test_a_savepoint_keeps_its_signature_or_is_signed_with_another_key(tmp_path: Path) -> None:
    found = find_checkpoint(signed(tmp_path).url, KEY)
    write_savepoint(found, str(tmp_path / "same"))
    assert problems_of(find_checkpoint(str(tmp_path / "same"), KEY)) == []
    other = CheckpointKey.of(b"another key of sixteen bytes")
    write_savepoint(found, str(tmp_path / "other"), other)
    assert problems_of(find_checkpoint(str(tmp_path / "other"), other)) == []
    with pytest.raises(CheckpointKeyError):
        find_checkpoint(str(tmp_path / "other"), KEY)
    unsigned = find_checkpoint(signed(tmp_path / "plain", None).url)
    write_savepoint(unsigned, str(tmp_path / "signed"), KEY)
    assert problems_of(find_checkpoint(str(tmp_path / "signed"), KEY)) == []


def test_a_wrong_key_drops_no_checkpoint(tmp_path: Path) -> None:
    """Some damaged checkpoints are dropped; a checkpoint that is signed with another key never is."""
    storage = signed(tmp_path)
    other = checkpoint_storage(storage.url, CheckpointKey.of(b"another key of sixteen bytes"))
    with pytest.raises(CheckpointKeyError):
        latest_checkpoint(other)
    with pytest.raises(CheckpointKeyError):
        fall_back(other, None, f"{storage.url}/chk-1")  # type: ignore[arg-type] - not reached
    assert problems_of(find_checkpoint(storage.url, KEY)) == []


def test_the_repr_and_the_pickle_of_a_key_hide_its_secret(tmp_path: Path) -> None:
    assert repr(KEY) == f"CheckpointKey(identity='{KEY.identity}')"
    storage = checkpoint_storage(str(tmp_path), KEY)
    assert pickle.loads(pickle.dumps(storage)).key == KEY  # the tasks sign what they write


@pytest.mark.parametrize("content", [None, b"", b"short\n", b" " * 40])
def test_a_file_that_is_not_a_key_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CheckpointKeyError, match=r"key file .*key.*openssl rand -hex 32"):
        read_key(str(path))


def test_a_line_end_is_not_part_of_a_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"0123456789abcdef\n")
    assert read_key(str(tmp_path / "key")) == CheckpointKey.of(b"0123456789abcdef")


class SignedRun(CrashRun):
    """The job of the crash tests with a key, which a test may remove."""

    key: CheckpointKey | None = KEY

    @property
    def storage(self) -> CheckpointStorage:
        return checkpoint_storage(str(self.folder / "checkpoints"), self.key)


PLANTED = ("state", "rest", "committable")


def plant(run: SignedRun, where: str, witness: Path) -> None:
    """Writes a payload into the last checkpoint, as an attacker with write access would."""
    run.key = None
    storage = run.storage
    path = Path(storage.url, metadata_name(2))
    document = json.loads(path.read_bytes())
    document.pop("key")
    checkpoint = document["checkpoint"]
    payload = base64.b64encode(planted_pickle(witness)).decode()
    if where == "rest":
        for task in checkpoint["tasks"]:
            task["rest"] = payload
    elif where == "state":
        for task in checkpoint["tasks"]:
            for file in task["state"]["files"]:
                Path(storage.url, file["name"]).write_bytes(planted_pickle(witness))
    else:
        for committable in checkpoint["committables"]:
            committable["handle"] = payload
    text = json.dumps(checkpoint, sort_keys=True, separators=(",", ":"))
    document["checksum"] = checksum(text.encode())
    path.write_text(json.dumps(document))
    run.key = KEY


@pytest.mark.parametrize("where", PLANTED)
def test_with_a_key_nothing_of_a_planted_checkpoint_is_unpickled(
    tmp_path: Path, where: str
) -> None:
    run = SignedRun(tmp_path)
    run.run(until=2)
    assert latest_checkpoint(run.storage) is not None
    plant(run, where, tmp_path / "ran")
    with pytest.raises((CheckpointKeyError, CorruptCheckpointError)):
        run.run()
    assert not (tmp_path / "ran").exists()


def test_with_a_key_a_planted_checkpoint_of_a_replaced_run_is_refused(tmp_path: Path) -> None:
    storage = signed(tmp_path)
    storage.write("chk-1/_replaced", encode(read_metadata(storage, 1), CheckpointKey.of(b"x" * 16)))
    with pytest.raises(CheckpointKeyError):
        replaced_checkpoint(storage, 1)


def test_without_a_key_the_payload_of_a_planted_checkpoint_runs(tmp_path: Path) -> None:
    """The documentation warns of this; the test also shows that the test above would detect a payload."""
    run = SignedRun(tmp_path)
    run.run(until=2)
    plant(run, "committable", tmp_path / "ran")
    run.key = None
    with pytest.raises(Exception):  # noqa: B017, PT011 - this test does not depend on how the payload fails
        run.run()
    assert (tmp_path / "ran").is_dir()


def test_a_job_with_a_key_resumes_like_one_without(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain, run = CrashRun(tmp_path / "plain"), SignedRun(tmp_path)
    plain.run()
    for until in range(1, len(BATCHES) + 1):
        run.parallelism = until
        run.run(until=until)
    assert run.output()["sums"] == plain.output()["sums"]
    assert replace(plain, folder=tmp_path).folder == run.folder
