"""A plan page in a browser: mouse, keyboard, print, frames and dark mode."""

from __future__ import annotations

import re
from typing import Any

import pytest
from plan_geometry import overlapping, vertices
from programs import drawn, word_count
from random_plans import random_plan

from opchain import StreamExecutionEnvironment
from opchain.common import Configuration
from opchain.compiler.plan.page.numbers import page_numbers
from opchain.compiler.plan.page.render import framed, program_page

pytestmark = pytest.mark.browser


@pytest.fixture
def word_count_page(open_page: Any) -> Any:
    return open_page(program_page(drawn("word_count").program()))


@pytest.fixture(scope="module")
def counted() -> Any:
    """A program that has run, and what it has counted."""
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    word_count(env)
    program = env.program()
    return program, env.execute().metrics


def focused(page: Any) -> str | None:
    number: str | None = page.evaluate("() => document.activeElement?.dataset.number ?? null")
    return number


def scale(page: Any) -> float:
    return float(
        page.evaluate("() => document.getElementById('drawing').style.getPropertyValue('--scale')")
    )


def test_a_click_on_a_vertex_shows_its_code_and_call_sites(word_count_page: Any) -> None:
    page = word_count_page
    page.click(".vertex[data-number='2']")
    code = page.evaluate(
        "() => JSON.parse(document.getElementById('contents').textContent).vertices[1].code"
    )
    assert page.text_content("#details pre") == code
    details = page.inner_text("#details")
    assert "split -> pair" in details
    assert re.search(r"programs\.py:\d+", details)
    page.click("#details .close")
    assert page.is_hidden("#details")


def test_a_click_on_an_arrow_shows_why_it_is_not_chained_and_the_remedy(
    word_count_page: Any,
) -> None:
    page = word_count_page
    page.click(".exchange[data-exchange='1']")
    details = page.inner_text("#details")
    assert "HASH by first" in details
    assert "records move to the task of their key (hash by 'first')" in details
    assert "parallelism differs" in details
    assert "To chain: " in page.evaluate(
        "() => getComputedStyle(document.querySelector('#details .advice'), '::before').content"
    )
    page.click("#details button.card:has-text('vertex 3')")
    assert "Vertex 3" in page.inner_text("#details")


def test_arrows_show_their_partitioning_and_explain_it_on_hover(
    word_count_page: Any,
) -> None:
    page = word_count_page
    texts = [" ".join(text.split()) for text in page.locator(".exchange").all_inner_texts()]
    assert texts == ["REBALANCE", "HASH first", "REBALANCE"]
    assert page.is_hidden("#hint")
    page.hover(".exchange[data-exchange='1']")
    hint = page.inner_text("#hint").splitlines()
    assert hint[0] == "Records move to the subtask of their key."
    assert any("'pair' runs 2 subtasks, 'count' runs 4" in line for line in hint)
    page.mouse.move(5, 400)
    assert page.is_hidden("#hint")


def test_operators_have_the_name_of_their_method_and_an_icon(word_count_page: Any) -> None:
    page = word_count_page
    kinds = page.locator(".vertex .kind").all_inner_texts()
    assert kinds == ["source", "flat map", "map", "reduce", "sink"]
    glyphs = page.locator(".vertex li .glyph").evaluate_all(
        "(glyphs) => glyphs.map((glyph) => glyph.classList[1])"
    )
    assert glyphs == ["source", "plain", "plain", "state", "sink"]
    legend = page.inner_text("#legend").split("\n")
    assert {"source", "keyed or operator state", "sink", "function"} <= set(legend)
    assert "window" not in legend


def test_the_lineage_of_the_operator_under_the_pointer_is_highlighted(open_page: Any) -> None:
    page = open_page(program_page(drawn("two_sinks").program()))
    lit = "() => [...document.querySelectorAll('li.lit .name')].map((name) => name.textContent)"
    page.hover(".vertex li:has-text('square')")
    page.wait_for_selector(".tracing")
    names = page.evaluate(lit)
    assert {"square", "same", "keep"} <= set(names)
    assert "archive: Writer" not in names, "another branch"
    page.mouse.move(5, 400)
    page.wait_for_function("() => !document.querySelector('.tracing')")


def test_the_panel_is_beside_the_drawing(word_count_page: Any) -> None:
    page = word_count_page
    page.click(".vertex[data-number='2']")
    panel = page.locator("#details").bounding_box()
    for box in page.locator(".vertex").all():
        where = box.bounding_box()
        assert where["x"] + where["width"] <= panel["x"]


def test_search_highlights_matches_and_moves_between_them(open_page: Any) -> None:
    page = open_page(program_page(random_plan(300, 1).program()))
    page.keyboard.press("/")
    page.keyboard.type("reduce is_valid")
    matches = page.locator(".vertex.match")
    assert 0 < matches.count() < 100
    assert all("reduce" in text and "is_valid" in text for text in matches.all_text_contents())
    assert page.text_content("#found").startswith(f"{matches.count()} of 300")
    faded = page.locator(".vertex:not(.match)").first
    page.wait_for_function(
        "(box) => Number(getComputedStyle(box).opacity) < .3", arg=faded.element_handle()
    )
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.text_content("#found") == f"2 of {matches.count()}"
    current = page.locator(".vertex.current").bounding_box()
    assert current["x"] >= 0
    assert current["x"] + current["width"] <= 1440
    assert current["y"] >= 0
    assert current["y"] + current["height"] <= 860
    page.keyboard.press("Escape")
    assert page.input_value("#search") == ""
    assert page.locator(".searching").count() == 0


@pytest.mark.parametrize("words", ["programs.py", "keyed state", "first hash", "count"])
def test_search_finds_call_sites_state_keys_and_uids(word_count_page: Any, words: str) -> None:
    word_count_page.fill("#search", words)
    assert word_count_page.locator(".match").count() > 0
    word_count_page.fill("#search", f"{words} nowhere")
    assert word_count_page.locator(".match").count() == 0


def test_the_page_can_be_used_with_the_keyboard_alone(word_count_page: Any) -> None:
    page = word_count_page
    page.locator("#help").focus()
    for number in ("1", "2"):
        page.keyboard.press("Tab")
        assert focused(page) == number
    page.keyboard.press("ArrowRight")
    assert focused(page) == "3"
    page.keyboard.press("ArrowLeft")
    assert focused(page) == "2"
    page.keyboard.press("Enter")
    assert "Vertex 2" in page.inner_text("#details")
    page.keyboard.press("ArrowRight")
    assert "Vertex 3" in page.inner_text("#details"), "the panel follows"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "details"
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "close"
    page.keyboard.press("Escape")
    assert page.is_hidden("#details")
    assert focused(page) == "2"
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.id") == "search"
    page.keyboard.type("+")
    assert page.input_value("#search") == "+"


def begin(page: Any) -> None:
    """Lets a page that is held be drawn."""
    page.evaluate("() => window.releaseLayout()")
    page.wait_for_selector(".drawn", state="attached")


@pytest.mark.parametrize("way", ["key", "click"])
def test_search_works_before_the_drawing_is_ready(open_page: Any, way: str) -> None:
    page = open_page(program_page(random_plan(30, 1).program()), is_held=True)
    if way == "key":
        page.keyboard.press("/")
    else:
        page.click("#search")
    page.keyboard.type("is_valid 27")
    assert page.text_content("#found").startswith("4 of 30")
    page.keyboard.press("Enter")
    begin(page)
    assert page.input_value("#search") == "is_valid 27"
    assert scale(page) >= 0.6, "it goes to the match when that stands somewhere"
    current = page.locator(".vertex.current").bounding_box()
    assert current["x"] >= 0
    assert current["x"] + current["width"] <= 1440
    page.keyboard.press("Escape")
    assert page.input_value("#search") == ""


def test_keys_and_buttons_take_effect_once_the_drawing_is_ready(open_page: Any) -> None:
    page = open_page(program_page(drawn("word_count").program()), is_held=True)
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    page.mouse.move(700, 400)
    page.mouse.wheel(0, 40)
    page.keyboard.press("0")
    page.click("#zoom-out")
    assert page.is_hidden("#overview")
    begin(page)
    assert focused(page) == "1"
    other = open_page(program_page(drawn("word_count").program()))
    assert scale(page) == pytest.approx(0.8 * scale(other))


def test_arrow_keys_up_and_down_stay_in_the_column(open_page: Any) -> None:
    page = open_page(program_page(random_plan(30, 1).program()))
    boxes = {box.number: box for box in vertices(page)}
    upper = min(boxes.values(), key=lambda box: (box.top, box.number))
    page.locator(f".vertex[data-number='{upper.number}']").focus()
    page.keyboard.press("ArrowDown")
    lower = boxes[int(focused(page) or 0)]
    assert lower.top > upper.top
    assert lower.left < upper.right
    assert upper.left < lower.right
    page.keyboard.press("ArrowUp")
    assert boxes[int(focused(page) or 0)].top < lower.top


def test_the_drawing_can_be_moved_zoomed_and_fitted(open_page: Any) -> None:
    page = open_page(program_page(random_plan(300, 1).program()))
    assert page.is_visible("#overview")
    before = scale(page)
    page.mouse.move(700, 400)
    anchor = page.locator(".vertex[data-number='1']").bounding_box()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(
        "(old) => Number(document.getElementById('drawing').style.getPropertyValue('--scale')) > old",
        arg=before,
    )
    grown = page.locator(".vertex[data-number='1']").bounding_box()
    factor = scale(page) / before
    assert grown["x"] - 700 == pytest.approx((anchor["x"] - 700) * factor, abs=1)
    page.mouse.move(700, 60 + 400)
    moved_from = page.locator(".vertex[data-number='1']").bounding_box()["x"]
    page.mouse.down()
    page.mouse.move(640, 460, steps=4)
    page.mouse.up()
    assert page.locator(".vertex[data-number='1']").bounding_box()["x"] == pytest.approx(
        moved_from - 60, abs=16
    )
    assert page.is_hidden("#details"), "the end of a drag is no click"
    page.click("#fit")
    assert page.is_hidden("#overview")
    for box in page.evaluate(
        "() => [...document.querySelectorAll('.vertex')].map((box) => box.getBoundingClientRect().toJSON())"
    ):
        assert box["left"] >= 0
        assert box["right"] <= 1440
        assert box["bottom"] <= 860
    page.keyboard.press("+")
    assert scale(page) > 0


PHONE = {"width": 390, "height": 760}


@pytest.mark.parametrize("size", [30, 300])
def test_zoomed_out_names_have_the_same_size_and_are_not_cut(open_page: Any, size: int) -> None:
    page = open_page(program_page(random_plan(size, 1).program()), viewport=PHONE)
    names = page.evaluate(
        """() => [...document.querySelectorAll('.far-away .vertex .far .title')].map((name) =>
          [name.textContent, getComputedStyle(name).fontSize, name.scrollHeight - name.clientHeight])"""
    )
    assert len(names) == size
    assert len({font_size for _, font_size, _ in names}) == 1
    assert [name for name, _, hidden in names if hidden > 1] == []


def test_a_plan_of_three_vertices_fits_the_screen_of_a_phone(open_page: Any) -> None:
    page = open_page(program_page(random_plan(3, 1).program()), viewport=PHONE)
    for number in (1, 2, 3):
        box = page.locator(f".vertex[data-number='{number}']").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
    assert page.is_hidden("#overview")


def test_a_phone_shows_an_overview_map_if_the_drawing_is_larger(
    open_page: Any, counted: Any
) -> None:
    page = open_page(program_page(*counted), viewport=PHONE)
    assert page.is_hidden("#overview")
    for _ in range(6):
        page.keyboard.press("+")
    map_, legend = (page.locator(name).bounding_box() for name in ("#overview", "#legend"))
    assert map_["x"] >= 0
    assert map_["y"] + map_["height"] <= legend["y"]


CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const luminance = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [.2126, .7152, .0722][at], 0);
  const ground = (box) => {
    for (let at = box; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const box of document.querySelectorAll('header *, main *, aside *')) {
    const isText = [...box.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!isText || !box.checkVisibility()) continue;
    const [text, below] = [rgba(getComputedStyle(box).color), ground(box)].map(luminance);
    const contrast = (Math.max(text, below) + .05) / (Math.min(text, below) + .05);
    found.push([box.className + ' ' + box.textContent.slice(0, 30), contrast]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("chosen", ["vertex", "exchange"])
def test_text_has_enough_contrast_in_light_and_dark_mode(
    open_page: Any, counted: Any, scheme: str, chosen: str
) -> None:
    page = open_page(program_page(*counted), color_scheme=scheme)
    page.click(f".{chosen} >> nth=1")
    page.mouse.move(5, 5)
    found = page.evaluate(CONTRASTS)
    assert len(found) > 40
    assert [(text, round(contrast, 2)) for text, contrast in found if contrast < 4.5] == []


def go_away(page: Any) -> None:
    """Until boxes have only what can be read at their size."""
    while not page.locator(".far-away").count():
        page.keyboard.press("-")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_zoomed_out_names_have_enough_contrast(open_page: Any, counted: Any, scheme: str) -> None:
    page = open_page(program_page(*counted), color_scheme=scheme, viewport=PHONE)
    go_away(page)
    found = page.evaluate(CONTRASTS)
    assert [(text, round(contrast, 2)) for text, contrast in found if contrast < 4.5] == []


def test_zoomed_out_boxes_stand_out_in_dark_mode(open_page: Any) -> None:
    page = open_page(program_page(random_plan(3, 1).program()), color_scheme="dark", viewport=PHONE)
    go_away(page)
    page.evaluate(
        "() => document.querySelectorAll('.far span').forEach((name) => name.style.color = 'var(--paper)')"
    )
    found = dict(page.evaluate(CONTRASTS))
    assert found["title clean 1"] > 1.35


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colour_scheme_can_be_switched(open_page: Any, scheme: str) -> None:
    page = open_page(program_page(drawn("word_count").program()), color_scheme=scheme)
    background = "() => getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(background)
    page.click("#theme")
    second = page.evaluate(background)
    page.click("#theme")
    assert second != first
    assert page.evaluate(background) == first


@pytest.mark.parametrize("size", [3, 30, 300])
def test_a_printed_page_has_the_whole_drawing_and_the_text(open_page: Any, size: int) -> None:
    page = open_page(program_page(random_plan(size, 1).program()), color_scheme="dark")
    page.click("#fit")
    page.click(".vertex >> nth=0")
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    assert pdf.startswith(b"%PDF-")
    widths = {float(found) for found in re.findall(rb"/MediaBox \[0 0 ([\d.]+) [\d.]+\]", pdf)}
    assert len(widths) == 1
    assert max(widths) <= 14_400, "readers of PDF open no larger page"
    page.emulate_media(media="print")
    assert (
        page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    for gone in ("nav", "search", "#details", "#overview"):
        assert page.is_hidden(gone)
    view = page.locator("#view").bounding_box()
    for box in page.evaluate(
        "() => [...document.querySelectorAll('.vertex')].map((box) => box.getBoundingClientRect().toJSON())"
    ):
        assert box["right"] <= view["x"] + view["width"] + 1
        assert box["bottom"] <= view["y"] + view["height"] + 1
    assert f"in {size} vertices" in page.inner_text("#as-text")


def test_the_page_of_a_finished_job_shows_its_numbers(open_page: Any, counted: Any) -> None:
    page = open_page(program_page(*counted))
    numbers = page_numbers(counted[1])
    boxes = page.locator(".vertex")
    assert boxes.count() == len(numbers)
    for at, counts in enumerate(numbers.values()):
        text = " ".join(boxes.nth(at).locator(".numbers").inner_text().split())
        assert text.startswith(
            f"{counts['recordsIn']} records in {counts['recordsOut']} records out"
        )
        assert text.endswith("end watermark")
        assert (
            float(boxes.nth(at).evaluate("(box) => box.style.getPropertyValue('--heat-share')")) > 0
        )
    page.click(".vertex[data-number='3']")
    rows = page.locator("#details tbody tr")
    assert rows.count() == 4
    shown = [row.split() for row in rows.all_inner_texts()]
    tasks = list(numbers.values())[2]["subtasks"]
    assert [(int(row[0]), int(row[1]), int(row[2])) for row in shown] == [
        (number, task["recordsIn"], task["recordsOut"]) for number, task in enumerate(tasks)
    ]


def test_numbers_can_be_added_and_updated_later(open_page: Any, counted: Any) -> None:
    program, metrics = counted
    page = open_page(program_page(program))
    assert page.locator(".numbers").count() == 0
    numbers = page_numbers(metrics)
    page.evaluate("(numbers) => window.opchainPlan.showNumbers(numbers)", numbers)
    assert page.locator(".numbers").count() == 4
    assert overlapping(vertices(page)) == []
    for counts in numbers.values():
        counts |= {"recordsIn": 123_456_789, "busy": 0.1, "backPressured": 0.8}
    page.evaluate("(numbers) => window.opchainPlan.showNumbers(numbers)", numbers)
    assert page.locator(".numbers").count() == 4
    assert "123.5 M" in page.locator(".numbers").first.inner_text()
    heat = page.locator(".vertex").first.evaluate("(box) => box.style.getPropertyValue('--heat')")
    assert heat == "var(--pressed)"


def test_a_box_shows_late_records_and_the_lag(open_page: Any, counted: Any) -> None:
    """A source without watermarks at the head of a chain does not hide the watermark that the chain sends on."""
    program, metrics = counted
    page = open_page(program_page(program))
    numbers = page_numbers(metrics)
    at = 1_700_000_000_000
    for counts in numbers.values():
        operators = list(counts["operators"].values())
        for operator in operators:
            operator["watermark"] = None
        operators[-1] |= {"watermark": at - 2_500, "lateDropped": 12_345}
        counts["lateDropped"] = 12_345
    page.evaluate(
        "([numbers, at]) => window.opchainPlan.showNumbers(numbers, at)",
        [numbers, at],
    )
    boxes = page.locator(".vertex")
    for number in range(boxes.count()):
        assert boxes.nth(number).locator(".late").all_inner_texts() == ["12.3 k late"]
        text = " ".join(boxes.nth(number).locator(".numbers").inner_text().split())
        assert text.endswith("2.5 s watermark lag")
    page.click(".vertex[data-number='2']")
    details = " ".join(page.locator("#details").inner_text().split())
    assert "Dropped late 12,345 records" in details


def test_a_notebook_shows_the_page_in_a_frame(open_page: Any) -> None:
    page = open_page(
        f"<!DOCTYPE html><title>notebook</title>{framed(program_page(drawn('word_count').program()))}"
    )
    inside = page.frame_locator("iframe")
    inside.locator(".drawn").wait_for(state="attached")
    inside.locator(".vertex[data-number='2']").click()
    assert "def process_0(values)" in inside.locator("#details pre").inner_text()
    inside.locator("#theme").click()


def test_without_javascript_the_plan_is_text(open_page: Any) -> None:
    env = drawn("word_count")
    page = open_page(program_page(env.program()), java_script_enabled=False)
    assert page.is_hidden("header")
    assert page.inner_text("#as-text").split() == env.explain().split()


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&amp; \u5358\u8a9e \U0001f600 \u202eabc"


def test_markup_in_names_is_shown_as_text_and_not_executed(open_page: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_sequence(1, 9).name(EVIL).uid(EVIL).slot_sharing_group(EVIL)
    numbers.map(lambda n: n).name("long " * 400).rebalance().map(lambda n: n).name(
        "w" * 3_000
    ).print(EVIL)
    page = open_page(program_page(env.program(EVIL)))
    assert page.text_content("#job") == EVIL
    assert page.title().startswith("</script><script>alert(1)")
    page.click(".vertex[data-number='1']")
    assert EVIL in page.text_content("#details")
    assert page.locator("img").count() == 0
    assert max(box.right - box.left for box in vertices(page)) <= 401
    assert (
        page.evaluate(
            "() => { const panel = document.getElementById('details'); return panel.scrollWidth - panel.clientWidth; }"
        )
        == 0
    )
    page.fill("#search", "onerror=alert(2)")
    assert page.locator(".vertex.match").count() > 0


def drawn_vertices(page: Any) -> list[str]:
    numbers: list[str] = page.locator(".vertex:not([hidden])").evaluate_all(
        "(boxes) => boxes.map((box) => box.dataset.number)"
    )
    return numbers


def test_the_page_can_show_only_the_lineage_of_a_vertex(open_page: Any) -> None:
    page = open_page(program_page(random_plan(30, 1).program()))
    contents = page.evaluate("() => JSON.parse(document.getElementById('contents').textContent)")
    sources = {exchange["source"] for exchange in contents["exchanges"]}
    reader = next(
        exchange["target"]
        for exchange in contents["exchanges"]
        if exchange["target"] in sources and exchange["source"] != exchange["target"]
    )
    page.click(f".vertex[data-number='{reader}']")
    page.click("#details .lineages button:has-text('upstream')")
    page.wait_for_selector("#alone")
    upstream = set(drawn_vertices(page))
    assert str(reader) in upstream
    assert len(upstream) < 30
    assert page.inner_text("#alone").startswith(f"{len(upstream)} of 30 vertices: upstream of ")
    for exchange in contents["exchanges"]:
        if exchange["target"] == reader:
            assert str(exchange["source"]) in upstream
    boxes = vertices(page)
    assert overlapping([box for box in boxes if box.right > box.left]) == []
    assert page.locator("#wires .tip").count() == len(
        [
            exchange
            for exchange in contents["exchanges"]
            if {str(exchange["source"]), str(exchange["target"])} <= upstream
        ]
    )
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelectorAll('.vertex[hidden]').length === 0")
    assert page.is_hidden("#alone")
    page.focus(f".vertex[data-number='{reader}']")
    page.keyboard.press("l")
    page.wait_for_selector("#alone")
    assert upstream < set(drawn_vertices(page)), "upstream and downstream"
    page.click("#alone button")
    page.wait_for_function("() => document.querySelectorAll('.vertex[hidden]').length === 0")


def test_a_search_finds_vertices_outside_of_the_shown_lineage(open_page: Any) -> None:
    page = open_page(program_page(random_plan(30, 1).program()))
    page.focus(".vertex[data-number='1']")
    page.keyboard.press("l")
    page.wait_for_selector("#alone")
    hidden = page.locator(".vertex[hidden]").first.get_attribute("data-number")
    page.fill("#search", f"vertex {hidden}")
    for _ in range(30):
        page.keyboard.press("Enter")
        if page.locator(f".vertex.current[data-number='{hidden}']").count():
            break
    page.wait_for_selector(f".vertex.current[data-number='{hidden}']")
    assert page.is_hidden("#alone")


def test_the_address_of_the_page_has_the_open_vertex(word_count_page: Any) -> None:
    page = word_count_page
    page.click(".vertex[data-number='2']")
    assert page.url.endswith("#vertex-2")
    page.reload()
    page.wait_for_selector("#details:not([hidden])")
    assert "Vertex 2" in page.inner_text("#details")
    page.keyboard.press("Escape")
    assert "#" not in page.url


def test_zoomed_out_sources_and_sinks_have_an_icon_and_a_short_name(word_count_page: Any) -> None:
    names = word_count_page.locator(".far .title").all_text_contents()
    assert not [name for name in names if name.startswith(("Source: ", "Sink: "))]
