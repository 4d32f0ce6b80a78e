"""The plan as one HTML page that needs nothing else: no network, no server, no other file.

`numbers.py` converts metrics to plain values. `render.py` collects the values of the page, and puts them into it as
JSON. The scripts in `static/` draw them. A user's text reaches the document only through this JSON and `textContent`,
so there is one place where escaping matters.
"""
