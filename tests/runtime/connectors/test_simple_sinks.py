from __future__ import annotations

import pickle
from typing import Any, cast

from opchain.runtime.connectors.simple_sinks import (
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


def test_sinks_can_be_pickled() -> None:
    sink = DiscardingSink()
    assert repr(pickle.loads(pickle.dumps(sink))) == repr(sink)
    pickle.loads(pickle.dumps(DiscardingSinkFunction())).invoke(1, NO_CONTEXT)
