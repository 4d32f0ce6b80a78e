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

const focused = (plan) => plan.vertices[Number(document.activeElement?.dataset.number) - 1];

// Along the first exchange; from nowhere to the first vertex.
function neighbour(plan, near, far) {
  const here = focused(plan);
  if (!here) return plan.vertices[0];
  const along = plan.exchanges.find((exchange) => exchange[near] === here.number);
  return along && plan.vertices[along[far] - 1];
}

// The nearest box above or below that shares a column with this one.
function beside(plan, direction) {
  const here = focused(plan);
  if (!here) return plan.vertices[0];
  const columns = (box) => [box.offsetLeft, box.offsetLeft + box.offsetWidth];
  const [left, right] = columns(here.box);
  const distance = (vertex) => direction * (vertex.box.offsetTop - here.box.offsetTop);
  return plan.vertices
    .filter(({ box }) => columns(box)[0] < right && columns(box)[1] > left)
    .filter((vertex) => distance(vertex) > 0)
    .sort((one, other) => distance(one) - distance(other))[0];
}
