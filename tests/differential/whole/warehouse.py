"""The stock of each warehouse in map state, with all of its calls."""

# mode: STREAMING
# parallelism: 2
from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction
from pyflink.datastream.state import MapStateDescriptor

MOVES = [
    ("w1", "in", {"pen": 10, "ink": 2}),
    ("w1", "out", {"pen": 4}),
    ("w2", "list", {}),
    ("w1", "list", {}),
    ("w1", "out", {"ink": 2, "cap": 1}),
    ("w1", "list", {}),
    ("w1", "clear", {}),
    ("w1", "list", {}),
]


class Stock(KeyedProcessFunction):
    def open(self, runtime_context):
        self.stock = runtime_context.get_map_state(
            MapStateDescriptor("stock", Types.STRING(), Types.INT())
        )

    def process_element(self, value, ctx):
        place, what, items = value
        if what == "in":
            self.stock.put_all(items.items())
        elif what == "out":
            for name, count in items.items():
                if name not in self.stock:
                    yield f"{place}: no {name}"
                elif self.stock.get(name) == count:
                    self.stock.remove(name)
                else:
                    self.stock[name] = self.stock[name] - count
        elif what == "clear":
            self.stock.clear()
        else:
            names = sorted(self.stock.keys())
            total = sum(self.stock.values())
            yield f"{place}: {names} {total} {self.stock.is_empty()} {sorted(self.stock.items())}"


def build(env, out):
    moves = env.from_collection(
        MOVES,
        Types.TUPLE([Types.STRING(), Types.STRING(), Types.MAP(Types.STRING(), Types.INT())]),
    )
    out(moves.key_by(lambda m: m[0], Types.STRING()).process(Stock(), Types.STRING()), "stock")
