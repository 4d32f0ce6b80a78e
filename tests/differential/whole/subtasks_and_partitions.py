"""Custom partitioners, rescale, broadcast and forward; which subtask gets which record."""

# mode: STREAMING
# parallelism: 3
from pyflink.common import Types
from pyflink.datastream import MapFunction, Partitioner


class Where(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.count = runtime_context.get_number_of_parallel_subtasks()

    def map(self, value):
        return value, self.subtask, self.count


class ByLength(Partitioner):
    def partition(self, key, num_partitions):
        return len(key) % num_partitions


class Table(Partitioner):
    def __init__(self, table):
        self.table = table

    def partition(self, key, num_partitions):
        return self.table.get(key, num_partitions - 1)


def build(env, out):
    numbers = env.from_collection(list(range(9)), Types.INT())
    words = env.from_collection(["a", "bb", "ccc", "dddd", ""], Types.STRING())
    out(words.partition_custom(ByLength(), lambda w: w).map(Where()), "length")
    out(numbers.partition_custom(Table({1: 0, 2: 1}), lambda v: v % 4).map(Where()), "table")
    out(numbers.partition_custom(lambda key, n: -key % n, lambda v: v).map(Where()), "lambda")
    out(
        numbers.partition_custom(lambda key, n: key.count("1") % n, lambda v: bin(v)[:5]).map(
            Where()
        ),
        "text keys",
    )
    out(numbers.broadcast().map(Where()), "broadcast")
    out(
        numbers.rebalance()
        .map(lambda v: v * 2)
        .forward()
        .map(lambda v: v + 1)
        .rebalance()
        .map(lambda v: v),
        "moved",
    )
    out(numbers.key_by(lambda v: v % 4, Types.INT()).map(Where()), "int keys")
    out(numbers.key_by(lambda v: str(v), Types.STRING()).map(Where()), "string keys")
    out(
        numbers.key_by(lambda v: (v % 2, "x"), Types.TUPLE([Types.INT(), Types.STRING()])).map(
            Where()
        ),
        "tuple keys",
    )
    out(numbers.key_by(lambda v: v / 2, Types.DOUBLE()).map(Where()), "double keys")
    out(numbers.key_by(lambda v: v > 4, Types.BOOLEAN()).map(Where()), "bool keys")
    out(numbers.key_by(lambda v: 10**12 * v, Types.LONG()).map(Where()), "long keys")
    out(numbers.key_by(lambda v: v % 5).map(Where()), "pickled keys")
    out(numbers.key_by(lambda v: bytes([v])).map(Where()), "bytes keys")
    keyed = numbers.key_by(lambda v: v % 3, Types.INT())
    out(keyed.reduce(lambda a, b: a + b).map(Where()), "after reduce")
    two = numbers.map(Where()).set_parallelism(2)
    out(two.map(lambda v: v[2]).set_parallelism(2), "two")
