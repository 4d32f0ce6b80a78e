"""Random pipelines in the form of the conformance vectors, of any size, from a seed.

They lean towards what is hard: unions, several inputs, side outputs, settings that cut chains, batch
graphs. Whether a pipeline is refused is left to chance.
"""

from __future__ import annotations

from random import Random
from typing import Any

Spec = dict[str, Any]

_ONE_INPUT = ("map", "filter", "flat_map", "process", "assign_watermarks", "async_wait")
_RARE_ONE_INPUT = (
    "async_wait_ordered",
    "full_window_map_partition",
    "window_all_tumbling_event",
)
_KEYED = ("reduce", "keyed_process", "window_tumbling_event")
_TWO_INPUTS = ("co_map", "co_flat_map", "co_process", "window_join", "window_co_group")
_SINKS = ("sink", "sink", "sink_committing", "legacy_sink")
_PARTITIONERS = ("forward", "rebalance", "rescale", "shuffle", "broadcast", "global", "custom")
_WITHOUT_ATTRIBUTES = {"key_by", "reinterpret_as_keyed", "union", "side_output"}
_STREAMS_WITHOUT_OPERATOR = _WITHOUT_ATTRIBUTES
_NAMES = (
    "parse",
    "clean",
    "a -> b",
    "[q]",
    "x, y",
    "caf\u00e9",
    '<b> & "c"',
    "Sink: s",
    "back\\slash",
)


def random_spec(seed: int, size: int) -> Spec:
    """A pipeline of about `size` nodes."""
    return _Drawing(Random(seed), size).spec(f"r{seed}")


class _Drawing:
    def __init__(self, random: Random, size: int) -> None:
        self._random = random
        self._size = size
        self._nodes: list[Spec] = []
        self._keyed: set[int] = set()
        self._open: list[int] = []  # streams to read from
        self._operators: set[int] = set()
        self._batch = random.random() < 0.35
        self._kinds_of_setting = random.sample(
            ("parallelism", "group", "max", "chaining", "uid", "name", "partitioner", "mode"),
            k=random.randint(2, 7),
        )

    def spec(self, name: str) -> Spec:
        env = self._env()
        for _ in range(self._random.randint(1, 3)):
            self._source()
        while len(self._nodes) < self._size:
            self._draw()
        for stream in self._open[-self._random.randint(1, 6) :]:
            self._add(self._random.choice(_SINKS), [stream], is_stream=False)
        return {"name": name, "env": env, "nodes": self._nodes}

    def _env(self) -> Spec:
        random = self._random
        env: Spec = {
            "parallelism": random.choice((1, 2, 4)),
            "max_parallelism": random.choice((None, None, None, 8, 128)),
            "chaining": random.random() < 0.95,
            "runtime_mode": "BATCH"
            if self._batch
            else random.choice(("STREAMING",) * 6 + ("AUTOMATIC",)),
            "chain_operators_with_different_max_parallelism": random.random() < 0.8,
        }
        if random.random() < 0.15:
            env["scheduler"] = random.choice(("Default", "AdaptiveBatch"))
        if random.random() < 0.15:
            env["auto_parallelism"] = random.random() < 0.3
        if random.random() < 0.2:
            env["batch_shuffle_mode"] = random.choice(
                (
                    "ALL_EXCHANGES_PIPELINED",
                    "ALL_EXCHANGES_HYBRID_FULL",
                    "ALL_EXCHANGES_HYBRID_SELECTIVE",
                )
            )
        if random.random() < 0.1:
            env["vertex_name_include_index_prefix"] = True
        return env

    def _draw(self) -> None:
        draws = {
            self._source: 8,
            self._one_input: 40,
            self._rare_one_input: 4,
            self._key_by: 10,
            self._on_key: 10,
            self._union: 6,
            self._side_output: 5,
            self._two_inputs: 6,
            self._two_keyed_inputs: 4,
            self._several_inputs: 4,
            self._sink: 8,
        }
        (draw,) = self._random.choices(list(draws), weights=list(draws.values()))
        draw()

    def _one_input(self) -> None:
        self._add(self._random.choice(_ONE_INPUT), [self._pick()])

    def _rare_one_input(self) -> None:
        self._add(self._random.choice(_RARE_ONE_INPUT), [self._pick()])

    def _on_key(self) -> None:
        self._add(self._random.choice(_KEYED), [self._pick_keyed()])

    def _union(self) -> None:
        legs = self._random.choice((1, 2, 2, 3, 4))
        self._add("union", [self._pick() for _ in range(legs)])

    def _two_keyed_inputs(self) -> None:
        kind = self._random.choice(("keyed_co_process", "interval_join"))
        self._add(kind, [self._pick_keyed(), self._pick_keyed()], partitioners=False)

    def _several_inputs(self) -> None:
        sources = [self._source() for _ in range(self._random.choice((0, 1, 1, 2)))]
        others = [self._pick() for _ in range(self._random.choice((0, 1)))]
        self._add("multi_input", sources + others or [self._pick()])

    def _sink(self) -> None:
        self._add(self._random.choice(_SINKS), [self._pick()], is_stream=False)

    def _two_inputs(self) -> None:
        random = self._random
        if random.random() < 0.3:
            keyed = random.random() < 0.5
            first = self._pick_keyed() if keyed else self._pick_plain()
            kind = "keyed_broadcast_process" if keyed else "broadcast_process"
            self._add(kind, [first, self._pick_plain()], partitioners=False)
        else:
            self._add(random.choice(_TWO_INPUTS), [self._pick(), self._pick()])

    def _source(self) -> int:
        kinds = ["source"] * (9 if self._batch else 5)
        if not self._batch:
            kinds += ["legacy_source", "legacy_parallel_source"]
        return self._add(self._random.choice(kinds), [])

    def _key_by(self) -> int:
        reinterprets = "parallelism" not in self._kinds_of_setting and self._random.random() < 0.2
        kind = "reinterpret_as_keyed" if reinterprets else "key_by"
        keyed = self._add(kind, [self._pick()])
        self._keyed.add(keyed)
        return keyed

    def _side_output(self) -> None:
        operators = [stream for stream in self._open if stream in self._operators]
        if operators:
            tag = self._random.choice(("late", "a", "b"))
            self._add("side_output", [self._random.choice(operators)], tag=tag, partitioners=False)

    def _pick(self) -> int:
        recent = self._open[-8:] if self._random.random() < 0.8 else self._open
        return self._random.choice(recent)

    def _pick_plain(self) -> int:
        plain = [stream for stream in self._open if stream not in self._keyed]
        return self._random.choice(plain[-8:])

    def _pick_keyed(self) -> int:
        keyed = [stream for stream in self._open if stream in self._keyed]
        if not keyed or self._random.random() < 0.5:
            return self._key_by()
        return self._random.choice(keyed[-4:])

    def _add(
        self,
        kind: str,
        inputs: list[int],
        *,
        is_stream: bool = True,
        partitioners: bool = True,
        **fields: Any,
    ) -> int:
        node: Spec = {"id": len(self._nodes) + 1, "kind": kind}
        if inputs:
            may_partition = partitioners and kind not in _KEYED
            node["inputs"] = [self._input(stream, may_partition) for stream in inputs]
        node |= fields
        if kind not in _WITHOUT_ATTRIBUTES:
            self._set_attributes(node)
        self._nodes.append(node)
        if is_stream:
            self._open.append(node["id"])
        if is_stream and kind not in _STREAMS_WITHOUT_OPERATOR:
            self._operators.add(node["id"])
        return int(node["id"])

    def _input(self, stream: int, may_partition: bool) -> Spec:
        random = self._random
        found: Spec = {"from": stream}
        if not may_partition or stream in self._keyed:
            return found
        if "partitioner" in self._kinds_of_setting and random.random() < 0.2:
            # forward() and different parallelisms together are refused, and teach little
            first = 1 if "parallelism" in self._kinds_of_setting else 0
            found["partitioner"] = random.choice(_PARTITIONERS[first:])
        if "mode" in self._kinds_of_setting and random.random() < 0.1:
            found["partitioner"] = random.choice(("rebalance", "rescale", "broadcast", "shuffle"))
            found["exchange_mode"] = random.choice(("UNDEFINED", "PIPELINED", "BATCH"))
        if self._batch and self._kinds_of_setting[0] == "mode" and random.random() < 0.05:
            found["partitioner"] = random.choice(
                ("forward_for_unspecified", "forward_for_consecutive_hash")
            )
        return found

    def _set_attributes(self, node: Spec) -> None:
        random = self._random
        kind = node["kind"]
        settings = self._kinds_of_setting
        if "name" in settings and random.random() < 0.3:
            node["name"] = random.choice(_NAMES)
        if "uid" in settings and random.random() < 0.4:
            node["uid"] = f"uid-{node['id']}"
        if "uid" in settings and kind not in ("sink", "sink_committing") and random.random() < 0.1:
            node["uid_hash"] = "".join(random.choice("0123456789abcdefABCDEF") for _ in range(32))
        is_fixed = kind in ("legacy_source", "window_all_tumbling_event")
        if "parallelism" in settings and not is_fixed and random.random() < 0.12:
            node["parallelism"] = random.choice((1, 2, 4, 5))
        if "max" in settings and not is_fixed and random.random() < 0.2:
            node["max_parallelism"] = random.choice((8, 16, 128, 200))
        if "group" in settings and random.random() < 0.12:
            node["slot_sharing_group"] = random.choice(("g1", "g2", "default"))
        if "chaining" in settings and random.random() < 0.15:
            choices = ("start_new_chain", "disable", "head_with_sources")
            is_sink = kind in _SINKS
            node["chaining"] = "disable" if is_sink else random.choice(choices)
