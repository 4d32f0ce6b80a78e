"""Records are objects of the standard library, without declared types."""

# mode: STREAMING
# parallelism: 1
import uuid
from collections import Counter, OrderedDict, deque
from datetime import timedelta
from fractions import Fraction
from pathlib import PurePosixPath

from pyflink.common import Types
from pyflink.datastream import MapFunction
from pyflink.datastream.state import ValueStateDescriptor

FILES = ["/a/x.txt", "/a/y.csv", "/b/z.txt", "/a/b/w.txt"]


class Recent(MapFunction):
    """The last two names of a folder, in a deque."""

    def open(self, runtime_context):
        self.names = runtime_context.get_state(
            ValueStateDescriptor("names", Types.PICKLED_BYTE_ARRAY())
        )

    def map(self, value):
        names = self.names.value() or deque(maxlen=2)
        names.append(value.name)
        self.names.update(names)
        return OrderedDict(folder=str(value.parent), names=list(names))


def build(env, out):
    paths = env.from_collection(FILES, Types.STRING()).map(lambda name: PurePosixPath(name))
    out(paths.key_by(lambda p: str(p.parent), key_type=Types.STRING()).map(Recent()), "recent")
    suffixes = paths.map(lambda p: Counter(p.suffix)).key_by(lambda c: 0).reduce(lambda a, b: a + b)
    out(suffixes.map(lambda c: sorted(c.items())), "letters")
    parts = paths.map(lambda p: (p.suffix, Fraction(1, len(p.parts))))
    out(parts.key_by(lambda p: p[0]).sum(1), "shares")
    out(paths.map(lambda p: uuid.uuid5(uuid.NAMESPACE_URL, str(p))), "names")
    out(paths.map(lambda p: timedelta(minutes=len(p.name))).map(lambda t: t * 1.5), "minutes")
    out(paths.map(lambda p: complex(len(p.name), 1) ** 2), "numbers")
