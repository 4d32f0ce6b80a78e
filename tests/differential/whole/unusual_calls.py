"""What PyFlink accepts beyond its documentation: None as a record, texts as collections, pairs for maps."""

# mode: STREAMING
# parallelism: 1
from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

MAY_BE_NONE = {
    "STRING": Types.STRING,
    "BIG_INT": Types.BIG_INT,
    "BIG_DEC": Types.BIG_DEC,
    "SQL_DATE": Types.SQL_DATE,
    "SQL_TIME": Types.SQL_TIME,
    "INSTANT": Types.INSTANT,
}


class Calls(KeyedProcessFunction):
    def open(self, runtime_context):
        self.counts = runtime_context.get_map_state(
            MapStateDescriptor("counts", Types.STRING(), Types.INT())
        )
        self.numbers = runtime_context.get_list_state(ListStateDescriptor("numbers", Types.INT()))

    def process_element(self, value, ctx):
        self.counts.put_all([("a", value), ("b", 2)])
        self.counts.put_all({"c": 3}.items())
        inner = self.counts.get_internal_state()
        yield f"{sorted(inner.items())} {inner.contains('a')} {inner.get('d')}"
        self.counts.remove("no such key")
        del self.counts["a"]
        yield f"{sorted(self.counts)} {'a' in self.counts} {self.counts['b']}"
        self.numbers.add_all(range(2))
        self.numbers.update((value, 5))
        yield f"{list(self.numbers)}"


def build(env, out):
    numbers = env.from_collection([1, 2])
    for name, make in MAY_BE_NONE.items():
        out(numbers.map(lambda v: None, output_type=make()), f"None as {name}")
    out(numbers.flat_map(lambda v: [None, "x"], Types.STRING()), "some are None")
    keyed = numbers.map(lambda v: None, Types.STRING()).key_by(lambda v: 1)
    out(keyed.map(lambda v: repr(v)), "None behind key_by")
    out(env.from_collection("abc"), "text")
    out(env.from_collection("abc", Types.STRING()), "typed text")
    out(numbers.key_by(lambda v: v).process(Calls(), Types.STRING()), "state")
