"""The plan as one HTML page that needs nothing else: no network, no server, no other file.

`contents.py` and `numbers.py` say what is on the page, as plain values; `render.py` puts them into the
page as JSON; the scripts in `static/` draw them. A user's text reaches the document only through that
JSON and `textContent`, so there is one place where escaping matters.
"""
