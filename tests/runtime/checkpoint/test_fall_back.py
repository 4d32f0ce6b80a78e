"""Damaged state files of a job: the error names an earlier checkpoint, and the job resumes from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen

from opchain.common import Types
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.checkpoint import fall_back as module
from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
from opchain.runtime.checkpoint.epoch_files import completed_checkpoints, metadata_name
from opchain.runtime.checkpoint.fall_back import (
    fall_back,
    forget_replaced,
    is_dropped,
    is_whole,
    replaced_checkpoint,
    suggest_earlier_checkpoint,
)
from opchain.runtime.checkpoint.metadata import encode, latest_checkpoint, read_metadata
from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Count(KeyedProcessFunction[str, str, tuple[str, int]]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: Any) -> Iterator[tuple[str, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def draw(env: Any) -> None:
    seen(given(env, "words").key_by(lambda word: word).process(Count()).uid("count"), "counts")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip_bits(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (truncate, "has .* bytes, but .* were written"),
    (flip_bits, "was altered: its checksum does not match"),
    (lambda path: path.unlink(), "is missing"),
]


def ran(folder: Path, epochs: int) -> EpochRun:
    run = EpochRun(draw, folder, 2)
    for _ in range(epochs):
        run.run(words=["a", "b", "a", "c"])
        assert run.latest is not None
        run.storage.publish(metadata_name(run.latest.checkpoint_id), encode(run.latest))
    run.close()
    return run


def newest_file(run: EpochRun, folder: Path) -> Path:
    assert run.latest is not None
    return folder / max(
        (name for name in run.latest.files), key=lambda name: int(name.split("/")[1])
    )


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[CheckpointCoordinator]:
    from opchain.runtime.checkpoint.storage import checkpoint_storage  # noqa: PLC0415

    opened = CheckpointCoordinator.open(
        checkpoint_storage(str(tmp_path)), "job", "run", retained=3, keeps_alive=False
    )
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("damage", "problem"), DAMAGES, ids=["truncated", "bits flipped", "deleted"]
)
def test_a_damaged_file_is_named_and_the_job_resumes_from_the_checkpoint_before(
    tmp_path: Path,
    coordinator: CheckpointCoordinator,
    damage: Callable[[Path], object],
    problem: str,
) -> None:
    run = ran(tmp_path, 3)
    damaged = newest_file(run, tmp_path)
    assert damaged.parent.name == "3"
    damage(damaged)
    restarted = run.restarted()
    with pytest.raises(CorruptCheckpointError, match=problem) as caught:
        restarted.run(words=["a"])
    assert str(damaged) in str(caught.value)
    offered = str(suggest_earlier_checkpoint(run.storage, caught.value, 3))
    path = f"{tmp_path}/chk-2"
    assert (
        f"checkpoint 2 is intact: to resume from it, set execution.state-recovery.path={path} and"
        in offered
    )
    went_on = fall_back(run.storage, coordinator, path)
    assert went_on == read_metadata(run.storage, 2)
    assert completed_checkpoints(run.storage) == [1, 2]
    assert replaced_checkpoint(run.storage, 3) == run.latest
    assert replaced_checkpoint(run.storage, 2) is None
    forget_replaced(run.storage, 3)
    assert replaced_checkpoint(run.storage, 3) is None
    again = replace_latest(restarted, went_on)
    found = again.run(words=["a", "b", "a", "c"])
    again.close()
    counts = [record for records in found.subtasks("counts").values() for record, _ in records]
    assert sorted(counts) == [("a", 5), ("a", 6), ("b", 3), ("c", 3)]


def test_a_replaced_run_that_wakes_late_keeps_the_note_of_its_successor(
    tmp_path: Path, coordinator: CheckpointCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ran(tmp_path, 3)
    truncate(newest_file(run, tmp_path))
    path = f"{tmp_path}/chk-2"
    keep = module._keep

    def keep_late(storage: Any, epoch: int) -> None:
        monkeypatch.setattr(module, "_keep", keep)
        assert fall_back(storage, coordinator, path) is not None
        keep(storage, epoch)

    monkeypatch.setattr(module, "_keep", keep_late)
    fall_back(run.storage, coordinator, path)
    assert replaced_checkpoint(run.storage, 3) == run.latest


def replace_latest(run: EpochRun, latest: Any) -> EpochRun:
    run.close()
    return replace(run, latest=latest)


def test_a_damaged_base_file_leaves_no_checkpoint_to_resume_from(tmp_path: Path) -> None:
    run = ran(tmp_path, 3)
    base = next(path for path in sorted((tmp_path / "shared" / "1").iterdir()))
    truncate(base)
    error = CorruptCheckpointError(str(base), "is torn")
    offered = str(suggest_earlier_checkpoint(run.storage, error, 3))
    assert "is torn; there is no intact checkpoint before 3" in offered
    assert "execution.checkpointing.num-retained=2 or more" in offered
    assert not is_whole(run.storage, 3)


def test_fall_back_ignores_a_setting_that_was_already_applied(
    tmp_path: Path, coordinator: CheckpointCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    run = ran(tmp_path, 3)
    for earlier in (1, 2, 3, 4):
        if earlier == 4:
            (tmp_path / "chk-3" / "_metadata").write_text("{}")
            with pytest.raises(CorruptCheckpointError, match="chk-4/_metadata is missing"):
                fall_back(run.storage, coordinator, f"{tmp_path}/chk-4")
        else:
            assert fall_back(run.storage, coordinator, f"{tmp_path}/chk-{earlier}") is None
    assert fall_back(run.storage, coordinator, f"{tmp_path}/elsewhere/chk-1") is None
    assert fall_back(run.storage, coordinator, str(tmp_path)) is None
    assert completed_checkpoints(run.storage) == [1, 2, 3]
    assert "the later checkpoint 3 is intact" in caplog.text


def test_fall_back_skips_a_checkpoint_whose_metadata_is_damaged(
    tmp_path: Path, coordinator: CheckpointCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    run = ran(tmp_path, 3)
    (tmp_path / "chk-3" / "_metadata").write_text("{}")
    with pytest.raises(CorruptCheckpointError, match=r"set execution.*/chk-2 and"):
        latest_checkpoint(run.storage)
    assert fall_back(run.storage, coordinator, f"{tmp_path}/chk-2") is not None
    assert replaced_checkpoint(run.storage, 3) is None
    assert is_dropped(run.storage, 3)
    assert not is_dropped(run.storage, 2)
    assert "sinks that do not record their commits write the output of epoch 3 again" in caplog.text
    latest = latest_checkpoint(run.storage)
    assert latest is not None
    assert latest.checkpoint_id == 2
