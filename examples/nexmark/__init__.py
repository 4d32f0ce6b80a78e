"""The Nexmark benchmark: 23 queries over an auction site's persons, auctions and bids.

One file per query, from `q0` to `q22`: its docstring says what it returns, and `build` draws it.

    python -m examples.nexmark generate --count 1000000 --out events.jsonl
    python -m examples.nexmark q5 --input events.jsonl --output out --parallelism 2
"""
