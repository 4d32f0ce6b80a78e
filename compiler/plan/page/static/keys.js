// What keys do; see the list behind the question mark.

function listenToKeys(plan, page) {
  const chosenKeys = {
    "/": () => page.search.focus(),
    "?": () => byId("keys").togglePopover(),
    "+": () => page.whenDrawn(() => page.port.zoom(1.25)),
    "=": () => page.whenDrawn(() => page.port.zoom(1.25)),
    "-": () => page.whenDrawn(() => page.port.zoom(0.8)),
    0: () => page.whenDrawn(() => page.port.fit()),
    f: () => page.whenDrawn(() => page.port.fit()),
    l: () => page.whenDrawn(() => {
      const vertex = plan.vertices[page.chosen?.kind === "vertex" ? page.chosen.number - 1 : -1] ?? focused(plan);
      if (page.alone) page.showAll();
      else if (vertex) page.showAlone(vertex, "both");
    }),
    ArrowRight: () => page.whenDrawn(() => page.focus(neighbour(plan, "source", "target"))),
    ArrowLeft: () => page.whenDrawn(() => page.focus(neighbour(plan, "target", "source"))),
    ArrowDown: () => page.whenDrawn(() => page.focus(beside(plan, 1))),
    ArrowUp: () => page.whenDrawn(() => page.focus(beside(plan, -1))),
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return page.escape();
    const isTyping = event.target.matches("input");
    const isScrolling = event.key.startsWith("Arrow") && event.target.closest("#details");
    if (isTyping || isScrolling || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = event.target.closest?.(".vertex");
    if (box && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      if (box.classList.contains("chosen")) byId("details").focus();
      else page.choose.vertex(Number(box.dataset.number));
    } else if (Object.hasOwn(chosenKeys, event.key)) {
      event.preventDefault();
      chosenKeys[event.key]();
    }
  });
}

const isDrawn = (vertex) => !vertex.box.hidden;
const focused = (plan) => plan.vertices[Number(document.activeElement?.dataset.number) - 1];

// Along the first exchange; from nowhere to the first vertex.
function neighbour(plan, near, far) {
  const here = focused(plan);
  if (!here) return plan.vertices.find(isDrawn);
  const along = plan.exchanges.find((exchange) => exchange[near] === here.number && isDrawn(plan.vertices[exchange[far] - 1]));
  return along && plan.vertices[along[far] - 1];
}

// The nearest box above or below that shares a column with this one.
function beside(plan, direction) {
  const here = focused(plan);
  if (!here) return plan.vertices.find(isDrawn);
  const columns = (box) => [box.offsetLeft, box.offsetLeft + box.offsetWidth];
  const [left, right] = columns(here.box);
  const distance = (vertex) => direction * (vertex.box.offsetTop - here.box.offsetTop);
  return plan.vertices
    .filter(isDrawn)
    .filter(({ box }) => columns(box)[0] < right && columns(box)[1] > left)
    .filter((vertex) => distance(vertex) > 0)
    .sort((one, other) => distance(one) - distance(other))[0];
}
