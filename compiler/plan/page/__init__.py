"""The plan as one self-contained HTML page, which needs no network, no server and no other file.

`numbers.py` converts metrics to plain values. `render.py` collects the values of the page, and adds them as JSON. The
scripts in `static/` draw them. Users' texts get into the document only through this JSON and `textContent`, so there is
one place for escaping.
"""
