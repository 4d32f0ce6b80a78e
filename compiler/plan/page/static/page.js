// Puts the page together.

async function show() {
  document.documentElement.classList.add("scripted");
  const plan = valueOf("contents");
  const view = byId("view");
  const drawing = byId("drawing");
  plan.exchanges.forEach((exchange, number) => {
    exchange.number = number;
    exchange.hasRate = isLive();
    exchange.label = exchangeLabel(exchange);
  });
  for (const vertex of plan.vertices) vertex.box = vertexBox(vertex);
  drawing.append(...plan.exchanges.map((exchange) => exchange.label), ...plan.vertices.map((vertex) => vertex.box));
  listenToTheme();
  heading(plan);

  // What needs the drawing waits for it: with hundreds of vertices the layout takes seconds.
  const waiting = [];
  const page = { counts: null, chosen: null, whenDrawn: (act) => waiting.push(act) };
  showNumbers(plan, page, valueOf("numbers"));
  const extent = {};
  const map = overview(plan.vertices, extent);
  const port = viewport(view, drawing, extent, (at, room) => map.follow(at, room));
  map.onPress(port.centre);
  page.port = port;
  page.draw = async () => {
    Object.assign(extent, await drawPlan(plan, port.room(), page.alone));
    map.draw();
    preparePrinting(extent);
  };
  page.choose = chooser(plan, page);
  // The lineage of a vertex alone, or everything again.
  page.showAlone = async (vertex, way) => {
    page.alone = vertex && lineageOf(plan, vertex, way);
    byId("alone").hidden = !vertex;
    if (vertex) byId("alone").firstElementChild.textContent = `${page.alone.size} of ${counted(plan.vertices.length, "vertex", "vertices")}: ${LINEAGES[way]} of ${farName(vertex)}`;
    await page.draw();
    port.begin();
    if (page.chosen?.kind === "vertex") page.choose.again(); // its arrows are new
  };
  page.showAll = () => page.showAlone(null);
  page.search = search(plan, view, (vertex) => page.whenDrawn(async () => {
    if (!isDrawn(vertex)) await page.showAll();
    port.reveal(vertex.box, Math.max(port.at.scale, 0.6));
  }));
  page.focus = (vertex) => {
    if (!vertex) return;
    vertex.box.focus({ preventScroll: true });
    port.reveal(vertex.box);
    if (page.chosen?.kind === "vertex") page.choose.vertex(vertex.number);
  };
  page.escape = () => {
    if (!byId("details").hidden) page.choose.nothing();
    else if (page.alone) page.showAll();
    else if (page.search.isActive()) page.search.clear();
    else document.activeElement?.blur();
  };
  listen(plan, page, view);
  followPointer(plan, view);
  showHints(plan, view);
  await page.draw();
  port.begin();
  document.documentElement.classList.add("drawn");
  page.whenDrawn = (act) => act();
  for (const act of waiting) act();
  const openLinked = () => {
    const linked = plan.vertices[Number(/^#vertex-(\d+)$/.exec(location.hash)?.[1]) - 1];
    if (linked) page.choose.vertex(linked.number);
  };
  openLinked();
  addEventListener("hashchange", openLinked);
  // For a view of a running job: the same numbers, as often as they come.
  const show = (counts, at) => showNumbers(plan, page, counts, at);
  window.opchainPlan = { showNumbers: show };
  followJob(plan, page, show);
}

const LINEAGES = { upstream: "upstream", downstream: "downstream", both: "lineage" };

async function drawPlan(plan, room, alone) {
  const isShown = (...numbers) => !alone || numbers.every((number) => alone.has(number));
  for (const vertex of plan.vertices) vertex.box.hidden = !isShown(vertex.number);
  for (const exchange of plan.exchanges) exchange.label.hidden = !isShown(exchange.source, exchange.target);
  const [vertices, exchanges] = [plan.vertices.filter(isDrawn), plan.exchanges.filter((exchange) => !exchange.label.hidden)];
  const boxes = [...vertices.map((vertex) => vertex.box), ...exchanges.map((exchange) => exchange.label)];
  for (const box of boxes) Object.assign(box.style, { left: 0, top: 0, width: "", height: "" });
  // A little more than a text needs: at another scale its letters are up to a hundredth wider.
  const sizes = boxes.map((box) => [Math.ceil(parseFloat(getComputedStyle(box).width) * 1.015) + 1, box.offsetHeight]);
  boxes.forEach((box, number) => {
    box.style.width = `${sizes[number][0]}px`;
    box.style.height = `${sizes[number][1]}px`;
  });
  const laidOut = await bestLayout(vertices, exchanges, room);
  const corners = [...laidOut.corners, ...laidOut.labels];
  boxes.forEach((box, number) => Object.assign(box.style, { left: `${corners[number].x}px`, top: `${corners[number].y}px` }));
  byId("drawing").dataset.direction = laidOut.direction;
  dress(byId("wires"), { width: laidOut.width, height: laidOut.height });
  drawWires(exchanges, laidOut.lines);
  return { width: laidOut.width, height: laidOut.height };
}

function heading(plan) {
  const operators = plan.vertices.reduce((sum, vertex) => sum + vertex.operators.length, 0);
  byId("job").textContent = byId("job").title = plan.job;
  byId("facts").textContent = [
    plan.mode.toLowerCase(), `${counted(operators, "operator")} in ${counted(plan.vertices.length, "vertex", "vertices")}`, counted(plan.exchanges.length, "exchange"),
  ].join("  \u00b7  ");
}

// Boxes have room for numbers only once there are some, and more once these have grown.
async function showNumbers(plan, page, counts, at) {
  const isFirst = !page.counts && counts;
  page.counts = counts;
  for (const vertex of plan.vertices) showOnBox(vertex, counts?.[vertex.id], at);
  showLegend(plan, Boolean(counts));
  if ((isFirst || outgrown(plan)) && !page.isDrawing) {
    page.isDrawing = true;
    await page.draw?.();
    page.isDrawing = false;
    page.port?.resize(); // a drawing that was seen whole is seen whole again
  }
  if (page.chosen?.kind === "vertex") page.choose.again();
}

// Numbers and the partitions of sources grow; names that are longer than the widest box are cut.
const outgrown = (plan) => plan.vertices.some(({ box }) => {
  const numbers = box.querySelector(".numbers");
  if (box.hidden) return false;
  const isCut = (name) => name.scrollWidth > name.clientWidth && name.closest(".vertex").offsetWidth < WIDEST;
  return (numbers && numbers.scrollWidth > numbers.clientWidth) || [...box.querySelectorAll("li.source .name, li.head .name")].some(isCut);
});
const WIDEST = 396;

// Opens and closes the panel; what is chosen is marked in the drawing.
function chooser(plan, page) {
  const panel = byId("details");
  let opener = null;

  function open(contents, marked, chosen) {
    unmark();
    for (const one of marked) one?.classList.add("chosen");
    if (!panel.contains(document.activeElement)) opener = document.activeElement;
    page.chosen = chosen;
    panel.replaceChildren(element("button.close", { onclick: nothing, "aria-label": "Close" }, "\u00d7"), ...contents.flat().filter(Boolean));
    panel.hidden = false;
    panel.scrollTop = 0;
    link(chosen.kind === "vertex" ? `#vertex-${chosen.number}` : "");
  }

  function unmark() {
    for (const one of document.querySelectorAll(".chosen")) one.classList.remove("chosen");
  }

  function nothing() {
    unmark();
    panel.hidden = true;
    page.chosen = null;
    link("");
    opener?.focus?.({ preventScroll: true });
  }

  // What is hidden beside a lineage is drawn again first.
  async function reveal(box) {
    if (box.hidden) await page.showAll();
    page.port.reveal(box);
  }

  const choose = {
    vertex(number, isAgain = false) {
      const vertex = plan.vertices[number - 1];
      const around = plan.exchanges.filter((exchange) => number === exchange.source || number === exchange.target);
      open(vertexDetails(plan, vertex, page, choose), [vertex.box, ...around.map((exchange) => exchange.wire)], { kind: "vertex", number });
      if (!isAgain) reveal(vertex.box);
    },
    exchange(number) {
      const exchange = plan.exchanges[number];
      open(exchangeDetails(plan, exchange, choose), [exchange.label, exchange.wire], { kind: "exchange", number });
      reveal(exchange.label);
    },
    // With later numbers; whoever reads, has selected text or presses Tab in the panel stays where they are.
    again() {
      const { number } = page.chosen;
      if (!getSelection().isCollapsed && panel.contains(getSelection().anchorNode)) return;
      const places = () => [panel, ...panel.querySelectorAll("pre")];
      const scrolled = places().map(({ scrollTop, scrollLeft }) => ({ scrollTop, scrollLeft }));
      keepFocus(panel, () => choose.vertex(number, true));
      places().forEach((place, at) => Object.assign(place, scrolled[at]));
    },
    nothing,
  };
  return choose;
}

// The address of a page leads to what is chosen; a page in a notebook has no address of its own.
function link(fragment) {
  if (/^(file|https?):$/.test(location.protocol) && location.hash !== fragment) history.replaceState(null, "", location.pathname + location.search + fragment);
}

// The button that has the focus still has it when its surroundings were made anew.
function keepFocus(place, renew) {
  const buttons = () => [...place.querySelectorAll("button")];
  const at = buttons().indexOf(document.activeElement);
  renew();
  buttons()[at]?.focus({ preventScroll: true });
}

function listen(plan, page, view) {
  view.addEventListener("click", (event) => {
    const vertex = event.target.closest(".vertex");
    const exchange = event.target.closest("[data-exchange]");
    if (event.target.closest("#alone")) return;
    if (vertex) page.choose.vertex(Number(vertex.dataset.number));
    else if (exchange) page.choose.exchange(Number(exchange.dataset.exchange));
    else if (!event.target.closest("#overview")) page.choose.nothing();
  });
  // Tab moves the focus, and what has it must be seen.
  view.addEventListener("focusin", (event) => {
    const box = event.target.closest(".vertex");
    if (box?.matches(":focus-visible")) page.port.reveal(box);
  });
  byId("zoom-in").addEventListener("click", () => page.whenDrawn(() => page.port.zoom(1.25)));
  byId("zoom-out").addEventListener("click", () => page.whenDrawn(() => page.port.zoom(0.8)));
  byId("alone").lastElementChild.addEventListener("click", () => page.showAll());
  byId("fit").addEventListener("click", () => page.whenDrawn(() => page.port.fit()));
  listenToKeys(plan, page);
  new ResizeObserver(() => page.port.resize()).observe(view);
}

// Why an exchange is one, beside the pointer.
function showHints(plan, view) {
  const hint = byId("hint");
  view.addEventListener("pointermove", (event) => {
    const over = event.buttons ? null : event.target.closest?.("[data-exchange]");
    hint.hidden = !over;
    if (!over) return;
    const number = Number(over.dataset.exchange);
    if (hint.dataset.shown !== String(number)) {
      hint.dataset.shown = number;
      hint.replaceChildren(...exchangeHint(plan.exchanges[number]).map((line, at) => element(at ? "p" : "b", {}, line)));
    }
    const { left, top, width, height } = view.getBoundingClientRect();
    hint.style.left = `${Math.max(8, Math.min(event.clientX - left + 14, width - hint.offsetWidth - 8))}px`;
    hint.style.top = `${Math.max(8, Math.min(event.clientY - top + 16, height - hint.offsetHeight - 8))}px`;
  });
  view.addEventListener("pointerleave", () => { hint.hidden = true; });
}

function listenToTheme() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
  });
}

show().catch((error) => {
  byId("progress").textContent = "The plan cannot be drawn by this browser; here it is as text.";
  document.documentElement.classList.remove("scripted");
  throw error;
});
