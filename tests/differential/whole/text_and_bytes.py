"""Texts with every kind of character, bytes, formatting, and split and join of lines."""

# mode: STREAMING
# parallelism: 1
import string
import textwrap
import unicodedata

from pyflink.common import Row, Types

TEXTS = [
    "plain",
    "ünï",
    "日本語",
    "👍🏽 ok",
    "tab\tnew\nline",
    "quote\"'\\",
    "",
    " ",
    "\x00nul",
    "a,b;c",
    "\u2028",
    "ﬀ",
    "İ",
]


def build(env, out):
    texts = env.from_collection(TEXTS, Types.STRING())
    out(texts, "texts")
    out(texts.map(lambda t: t.upper(), Types.STRING()), "upper")
    out(texts.map(lambda t: t.encode("utf-8")), "bytes")
    out(
        texts.map(lambda t: t.encode(), Types.PRIMITIVE_ARRAY(Types.BYTE())).map(
            lambda b: b.decode()
        ),
        "there and back",
    )
    out(texts.map(lambda t: t.encode("utf-16"), Types.PICKLED_BYTE_ARRAY()), "pickled")
    out(
        texts.map(
            lambda t: (t, len(t), [c for c in t]),
            Types.TUPLE([Types.STRING(), Types.INT(), Types.LIST(Types.STRING())]),
        ),
        "tuples",
    )
    out(texts.map(lambda t: f"{t!r:>12}|{len(t):03d}|{t!s:.3}|{len(t) / 3:.2f}|{t=}"), "formatted")
    out(texts.map(lambda t: "%-5s|%r|%5.1f|%x" % (t, t, len(t), len(t))), "percent")
    out(texts.map(lambda t: "{0}{1:>{2}}{name}".format(t, len(t), 4, name=t[:1])), "format")
    out(texts.map(lambda t: unicodedata.normalize("NFKD", t)), "normalized")
    out(texts.key_by(lambda t: t[:1], Types.STRING()).reduce(lambda a, b: a + "+" + b), "by first")
    out(texts.key_by(lambda t: t.casefold()).map(lambda t: t.title()), "by casefold")
    out(texts.flat_map(lambda t: t.splitlines(True)), "lines")
    out(
        texts.map(lambda t: t.translate(str.maketrans("aeiou", "AEIOU", string.punctuation))),
        "translated",
    )
    out(texts.map(lambda t: textwrap.shorten(t, 4, placeholder="…")), "shortened")
    out(
        texts.map(
            lambda t: Row(text=t, parts=t.partition(",")),
            Types.ROW_NAMED(["text", "parts"], [Types.STRING(), Types.TUPLE([Types.STRING()] * 3)]),
        ),
        "rows",
    )
    out(texts.map(lambda t: {t: t[::-1]}, Types.MAP(Types.STRING(), Types.STRING())), "maps")
    out(texts.map(lambda t: t[:1] or "-", Types.CHAR()).map(lambda c: repr(c)), "chars in chain")
