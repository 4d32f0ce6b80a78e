"""ElasticsearchSink against a real OpenSearch server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opensearch_server import opensearch_server

from opchain.common import Configuration, Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.sinks import ElasticsearchSink
from opchain.runtime.errors import SinkError
from opchain.testing import SinkConformance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opensearch_server import OpenSearch

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opensearch() -> Iterator[OpenSearch]:
    with opensearch_server() as server:
        yield server


class TestElasticsearchSink(SinkConformance):
    """Each target is an index."""

    most_failures = 40

    server: OpenSearch

    @pytest.fixture(autouse=True)
    def _server(self, opensearch: OpenSearch) -> None:
        type(self).server = opensearch

    def make_sink(self, target: Path) -> Any:
        return ElasticsearchSink(
            self.server.url, _index_of(target), document=lambda record: {"text": record}
        )

    def visible(self, target: Path) -> list[str]:
        documents = self.server.documents(_index_of(target))
        return [document["text"] for document in documents.values()]


def test_a_job_writes_counts_to_documents_with_its_own_ids(opensearch: OpenSearch) -> None:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    words = env.from_collection(["a", "b", "a", "c", "a", "b"], Types.STRING())
    counts = words.map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()])).key_by(
        lambda pair: pair[0]
    )
    counts.sum(1).sink_to(
        ElasticsearchSink(
            opensearch.url,
            "counts",
            document=lambda pair: {"word": pair[0], "count": pair[1]},
            document_id=lambda pair: str(pair[0]),
        )
    )
    env.execute()
    assert opensearch.documents("counts") == {
        "a": {"word": "a", "count": 3},
        "b": {"word": "b", "count": 2},
        "c": {"word": "c", "count": 1},
    }


def test_a_document_that_the_mapping_rejects_fails_with_the_reason(opensearch: OpenSearch) -> None:
    mapping = {"mappings": {"dynamic": "strict", "properties": {"n": {"type": "integer"}}}}
    opensearch.request("numbers", "PUT", mapping)
    sink = ElasticsearchSink(opensearch.url, "numbers")
    sink.send("o.1.1.d", [{"n": 1}])
    with pytest.raises(
        SinkError, match=r"refuses the document .*o.1.2.d.1.*mapper_parsing_exception"
    ):
        sink.send("o.1.2.d", [{"n": 2}, {"n": "nine"}])
    with pytest.raises(SinkError, match=r"refuses the document .*strict_dynamic_mapping_exception"):
        sink.send("o.1.3.d", [{"other": 1}])


def test_an_index_name_that_is_rejected_fails_with_the_reason(opensearch: OpenSearch) -> None:
    with pytest.raises(SinkError, match=r"invalid_index_name_exception"):
        ElasticsearchSink(opensearch.url, "Upper Case").send("o.1.1.d", [{"n": 1}])


def _index_of(target: Path) -> str:
    return f"{target.parent.name}-{target.name}".lower().replace("_", "-").lstrip("-")
