"""The Nexmark benchmark: 23 queries over an auction site's persons, auctions and bids.

Each query has its own module, from `q0` to `q22`. Its docstring describes the result, and `build` draws the query.

    python -m examples.nexmark generate --count 1000000 --out events.jsonl
    python -m examples.nexmark q5 --input events.jsonl --output out --parallelism 2
"""
