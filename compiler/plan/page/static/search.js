// Leaves what matches as it is, and lets the rest fade.

function search(plan, view, goTo) {
  const field = byId("search");
  const found = byId("found");
  const texts = new Map(plan.vertices.map((vertex) => [vertex, searchText(vertex)]));
  let matches = [];
  let current = -1;

  function update() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = (text) => words.every((word) => text.includes(word));
    matches = words.length ? plan.vertices.filter((vertex) => hits(texts.get(vertex))) : [];
    const exchanges = words.length ? plan.exchanges.filter((exchange) => hits(exchangeText(exchange))) : [];
    const shown = new Set(matches);
    for (const vertex of plan.vertices) vertex.box.classList.toggle("match", shown.has(vertex));
    for (const exchange of plan.exchanges) exchange.label.classList.toggle("match", exchanges.includes(exchange));
    view.classList.toggle("searching", words.length > 0);
    setCurrent(-1);
    const more = exchanges.length ? `, ${counted(exchanges.length, "exchange")}` : "";
    found.textContent = words.length ? `${matches.length} of ${plan.vertices.length}${more}` : "";
  }

  function setCurrent(position) {
    matches[current]?.box.classList.remove("current");
    current = position;
    matches[current]?.box.classList.add("current");
  }

  function step(by) {
    if (!matches.length) return;
    setCurrent((current + by + matches.length) % matches.length);
    found.textContent = `${current + 1} of ${matches.length}`;
    goTo(matches[current]);
  }

  function clear() {
    field.value = "";
    update();
  }

  field.addEventListener("input", update);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
  });
  return { clear, focus: () => field.select() || field.focus(), isActive: () => field.value !== "" };
}

function searchText(vertex) {
  const operators = vertex.operators.flatMap((operator) => [
    operator.name, operator.kind, operator.callSite, operator.uid, operator.id, operator.state, operator.description, ...operator.keys]);
  return [`vertex ${vertex.number}`, vertex.id, vertex.slotSharingGroup, ...operators].filter(Boolean).join("\n").toLowerCase();
}

function exchangeText(exchange) {
  const reasons = exchange.reasons.flatMap((rule) => [rule.code, rule.reason]);
  return [exchange.strategy, exchange.key, exchange.sideOutput, ...reasons].filter(Boolean).join("\n").toLowerCase();
}
