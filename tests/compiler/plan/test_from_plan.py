from programs import drawn

from opchain import StreamExecutionEnvironment
from opchain.common import SimpleStringSchema, WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan, stream_plan
from opchain.datastream.connectors.kafka import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from opchain.testing import plan_of


def test_a_job_plan_has_the_decisions_of_the_job_graph() -> None:
    compiled = compile_program(drawn("word_count").program(), "job-graph")
    plan = job_plan(compiled)
    assert compiled.job_graph is not None
    assert [vertex.id for vertex in plan.vertices] == [v.id for v in compiled.job_graph.vertices]
    count = next(operator for operator in plan.operators if operator.name == "count")
    assert (count.uid, count.kind, count.parallelism) == ("count", "reduce", 4)
    assert (count.state, count.keys) == ("keyed state", ("first",))
    assert count.call_site.startswith("programs.py:")
    into_count = next(edge for edge in plan.edges if edge.target == count.node)
    assert (into_count.ship_strategy, into_count.key) == ("HASH", "first")
    assert (into_count.pattern, into_count.result_type) == ("ALL_TO_ALL", "PIPELINED_BOUNDED")
    assert [rule.code for rule in into_count.not_chained_because] == ["parallelism", "partitioner"]
    assert all(rule.reason and rule.advice for rule in into_count.not_chained_because)


def test_an_edge_is_chained_or_has_reasons() -> None:
    for name in ("side_outputs", "two_sinks", "batch", "rescale"):
        for edge in plan_of(drawn(name)).edges:
            assert edge.is_chained == (not edge.not_chained_because)
            assert edge.is_chained == (edge.pattern == "")


def test_readers_of_one_blocking_data_set_share_its_number() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.get_configuration().set_string("execution.runtime-mode", "BATCH")
    numbers = env.from_sequence(1, 9).rebalance()
    for name in ("left", "right"):
        numbers.map(str).name(name).print()
    cuts = [edge for edge in plan_of(env).edges if not edge.is_chained]
    assert {edge.data_set for edge in cuts} == {0}


def test_a_stream_plan_has_internal_partitioners_and_exchange_modes() -> None:
    plan = stream_plan(compile_program(drawn("batch").program(), "operator-ids"))
    assert [edge.partitioner for edge in plan.edges] == [
        "REBALANCE",
        "HASH",
        "HASH",
        "FORWARD_FOR_UNSPECIFIED",
    ]
    assert plan.mode == "BATCH"
    assert plan.is_dynamic
    sinks = stream_plan(compile_program(drawn("two_sinks").program(), "operator-ids"))
    assert all(operator.id for operator in sinks.operators)


def test_sources_and_sinks_of_kafka_have_their_topics() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = KafkaSource.builder().set_bootstrap_servers("a:1").set_topics("left", "right")
    source.set_value_only_deserializer(SimpleStringSchema())
    schema = KafkaRecordSerializationSchema.builder().set_topic("target")
    schema.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers("a:1").set_record_serializer(schema.build())
    stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "in")
    stream.map(str.upper).name("upper").sink_to(sink.build()).name("out")
    topics = {operator.name: operator.topics for operator in plan_of(env).operators}
    assert (topics["Source: in"], topics["upper"]) == ("left, right", None)
    assert topics["out: Writer"] == "target"
