"""Orders are sent to the subtask of their region."""

# mode: STREAMING
# parallelism: 3
from pyflink.common import Types
from pyflink.datastream import MapFunction, Partitioner

ORDERS = [("north", 1), ("south", 2), ("west", 3), ("north", 4), ("east", 5), ("south", 6)]
REGIONS = {"north": 0, "south": 1, "west": 2, "east": 0}


class ByRegion(Partitioner):
    def partition(self, key: str, num_partitions: int) -> int:
        return REGIONS[key] % num_partitions


class Where(MapFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.of = runtime_context.get_number_of_parallel_subtasks()

    def map(self, value):
        return value[0], value[1], self.subtask, self.of


def build(env, out):
    orders = env.from_collection(ORDERS, Types.TUPLE([Types.STRING(), Types.INT()]))
    out(orders.partition_custom(ByRegion(), lambda o: o[0]).map(Where()), "subtasks")
    out(orders.key_by(lambda o: o[0], key_type=Types.STRING()).map(Where()), "keys")
