"""Access logs by regular expressions: errors to side outputs, percentiles, top urls, and counts by status class."""

# mode: STREAMING and BATCH
# parallelism: 1
import ipaddress
import re
import statistics
import urllib.parse
from collections import OrderedDict, defaultdict
from datetime import datetime
from operator import itemgetter

from pyflink.common import Row, Types
from pyflink.datastream import (
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
)
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

PATTERN = re.compile(
    r"""(?P<ip>\S+)\s-\s(?P<user>\S+)\s\[(?P<at>[^]]+)\]\s"(?P<verb>[A-Z]+)\s(?P<url>\S+)[^"]*"\s(?P<status>\d{3})\s(?P<size>\d+|-)"""
)
LINES = [
    '10.0.0.1 - ann [01/Feb/2024:10:00:00 +0000] "GET /a?q=x%20y&n=1 HTTP/1.1" 200 512',
    '10.0.0.2 - - [01/Feb/2024:10:00:01 +0000] "POST /b HTTP/1.1" 500 -',
    '2001:db8::1 - bob [01/Feb/2024:12:00:01 +0200] "GET /a HTTP/1.1" 404 20',
    "no log line",
    '10.0.0.1 - ann [32/Feb/2024:10:00:00 +0000] "GET /a HTTP/1.1" 200 1',
    '10.0.0.9 - é [01/Feb/2024:10:00:07 -0130] "PUT /%C3%A9?n=2&n=3 HTTP/2" 301 77',
    '10.0.0.1 - ann [01/Feb/2024:10:00:08 +0000] "GET /a HTTP/1.1" 200 2048',
]
HIT = Types.ROW_NAMED(
    ["ip", "user", "at", "path", "query", "status", "size"],
    [
        Types.STRING(),
        Types.STRING(),
        Types.LONG(),
        Types.STRING(),
        Types.MAP(Types.STRING(), Types.LIST(Types.STRING())),
        Types.SHORT(),
        Types.INT(),
    ],
)
ERRORS = OutputTag("errors", Types.TUPLE([Types.STRING(), Types.STRING()]))


class Parse(ProcessFunction):
    def __init__(self):
        self.bad = 0

    def process_element(self, value, ctx):
        if not (found := PATTERN.fullmatch(value)):
            self.bad += 1
            yield ERRORS, (value, f"no match #{self.bad}")
            return
        fields = found.groupdict()
        try:
            at = datetime.strptime(fields["at"], "%d/%b/%Y:%H:%M:%S %z")
        except ValueError as error:
            yield ERRORS, (fields["at"], type(error).__name__)
        else:
            url = urllib.parse.urlsplit(fields["url"])
            yield Row(
                ip=fields["ip"],
                user=None if fields["user"] == "-" else fields["user"],
                at=int(at.timestamp()),
                path=urllib.parse.unquote(url.path),
                query=urllib.parse.parse_qs(url.query),
                status=int(fields["status"]),
                size=0 if fields["size"] == "-" else int(fields["size"]),
            )


class Percentiles(KeyedProcessFunction):
    def open(self, ctx):
        self.sizes = ctx.get_list_state(ListStateDescriptor("sizes", Types.INT()))
        self.by_class = ctx.get_map_state(
            MapStateDescriptor("classes", Types.STRING(), Types.INT())
        )

    def process_element(self, value, ctx):
        self.sizes.add(value.size)
        name = {2: "ok", 3: "moved", 4: "client", 5: "server"}.get(value.status // 100, "?")
        self.by_class.put(
            name, 1 + (self.by_class.get(name) if self.by_class.contains(name) else 0)
        )
        sizes = sorted(self.sizes)
        yield (
            ctx.get_current_key(),
            statistics.median(sizes),
            sizes[int(len(sizes) * 0.9)],
            dict(sorted(self.by_class.items())),
        )


class Network(MapFunction):
    cache = {}

    def map(self, value):
        address = ipaddress.ip_address(value.ip)
        return OrderedDict(
            version=address.version, private=address.is_private, text=str(address.exploded)
        )


def build(env, out):
    hits = env.from_collection(LINES, Types.STRING()).process(Parse(), HIT)
    out(hits, "hits")
    out(hits.get_side_output(ERRORS), "errors")
    out(hits.key_by(lambda h: h.path).process(Percentiles()), "percentiles")
    out(hits.map(Network()).map(lambda d: list(d.items())), "networks")
    out(
        hits.flat_map(
            lambda h: ((k, v) for k, vs in h.query.items() for v in vs),
            Types.TUPLE([Types.STRING(), Types.STRING()]),
        ),
        "query",
    )
    out(hits.map(lambda h: h[3:7]), "slices")
    out(hits.map(lambda h: (h["ip"], h["user"])), "named")
    out(hits.key_by(lambda h: h.user, Types.STRING()).sum("size"), "sum by user")
    out(
        hits.filter(lambda h: h.query).map(lambda h: sorted(h.as_dict().items(), key=repr)),
        "dictionaries",
    )
    out(hits.map(lambda h: h.query, Types.MAP(Types.STRING(), Types.LIST(Types.STRING()))), "maps")
