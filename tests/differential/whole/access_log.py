"""Lines of an access log: errors of each path, and bytes of each host."""

# mode: STREAMING
# parallelism: 1
import re
from datetime import datetime

from pyflink.common import Row, Types

LINE = re.compile(r'(?P<host>\S+) \[(?P<time>[^]]+)\] "(?P<verb>\w+) (?P<path>\S+)" (\d+) (\d+|-)')
LOG = [
    'a.example [22/Nov/2024:10:00:01 +0000] "GET /index.html" 200 512',
    'b.example [22/Nov/2024:10:00:02 +0100] "GET /missing" 404 -',
    "not a line",
    'a.example [22/Nov/2024:10:00:03 +0000] "POST /form" 500 17',
    'a.example [22/Nov/2024:10:01:00 +0000] "GET /missing" 404 20',
]
HIT = Types.ROW_NAMED(
    ["host", "second", "path", "status", "size"],
    [Types.STRING(), Types.LONG(), Types.STRING(), Types.SHORT(), Types.LONG()],
)


def parse(line):
    found = LINE.match(line)
    if found is None:
        return
    moment = datetime.strptime(found["time"], "%d/%b/%Y:%H:%M:%S %z")
    size = 0 if found[6] == "-" else int(found[6])
    yield Row(
        host=found["host"],
        second=int(moment.timestamp()),
        path=found["path"],
        status=int(found[5]),
        size=size,
    )


def build(env, out):
    hits = env.from_collection(LOG).flat_map(parse, output_type=HIT)
    out(hits, "hits")
    out(
        hits.filter(lambda h: h.status >= 400)
        .map(lambda h: (h.path, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda e: e[0])
        .sum(1),
        "errors",
    )
    out(hits.key_by(lambda h: h.host).sum("size").map(lambda h: (h.host, h["size"])), "bytes")
