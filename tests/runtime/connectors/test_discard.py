from __future__ import annotations

import pickle
from typing import Any, cast

from opchain.runtime.connectors.discard import (
    CountingDiscardingSink,
    DiscardingSink,
    DiscardingSinkFunction,
)

NO_CONTEXT = cast("Any", None)


def test_a_discarding_sink_has_nothing_to_commit() -> None:
    sink = DiscardingSink()
    writer = sink.create_writer(NO_CONTEXT)
    writer.write(1, None)
    writer.write_batch([2, 3], None)
    assert list(writer.prepare_commit()) == []
    assert sink.create_committer() is None
    assert not sink.has_committer
    assert not sink.reads_timestamps


def test_a_counting_sink_commits_how_many_came_since_the_last_time() -> None:
    sink = CountingDiscardingSink()
    writer = sink.create_writer(NO_CONTEXT)
    writer.write(1, 5)
    writer.write_batch([2, 3], [6, 7])
    assert writer.prepare_commit() == (3,)
    writer.write_batch([4], None)
    assert writer.prepare_commit() == (1,)
    committer = sink.create_committer()
    committer.commit([3, 1])
    committer.close()
    assert sink.has_committer


def test_sinks_travel() -> None:
    for sink in (DiscardingSink(), CountingDiscardingSink()):
        assert repr(pickle.loads(pickle.dumps(sink))) == repr(sink)
    pickle.loads(pickle.dumps(DiscardingSinkFunction())).invoke(1, NO_CONTEXT)
