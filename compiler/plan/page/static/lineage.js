// The operators upstream and downstream of an operator: all else fades while the pointer is on it, and can be hidden.

const LINGER_MS = 140; // so that a pointer on its way somewhere lights nothing
const WAYS = { upstream: "reads", downstream: "feeds" };

function neighbours(plan) {
  const feeds = new Map(); // node -> nodes that it sends to
  const reads = new Map();
  const join = (from, to) => {
    feeds.set(from, [...(feeds.get(from) ?? []), to]);
    reads.set(to, [...(reads.get(to) ?? []), from]);
  };
  for (const vertex of plan.vertices) {
    for (const operator of vertex.operators) if (operator.parent !== null) join(operator.parent, operator.node);
    // A source that runs inside the head of its vertex.
    for (const operator of vertex.operators) if (operator.role === "source") join(operator.node, vertex.operators.find((other) => other.role === "head").node);
  }
  for (const exchange of plan.exchanges) join(exchange.from, exchange.to);
  return { feeds, reads };
}

const nodesOf = (vertex) => vertex.operators.map((operator) => operator.node);

// The numbers of the vertices with operators that are upstream or downstream of a vertex's, or both.
function lineageOf(plan, vertex, way) {
  const ways = neighbours(plan);
  const found = (WAYS[way] ? [WAYS[way]] : Object.values(WAYS)).map((name) => reached(nodesOf(vertex), ways[name]));
  return new Set(plan.vertices.filter((other) => nodesOf(other).some((node) => found.some((nodes) => nodes.has(node)))).map((other) => other.number));
}

function followPointer(plan, view) {
  const { feeds, reads } = neighbours(plan);
  let waiting = 0;
  let shown = null;

  view.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || event.buttons) return;
    const start = startOf(event.target);
    if (String(start) === String(shown)) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => light(start), start.length ? LINGER_MS : 0);
  });
  view.addEventListener("pointerleave", () => {
    clearTimeout(waiting);
    light([]);
  });

  function startOf(target) {
    const row = target.closest?.("li[data-node]");
    if (row) return [Number(row.dataset.node)];
    const box = target.closest?.(".vertex");
    return box ? nodesOf(plan.vertices[Number(box.dataset.number) - 1]) : [];
  }

  function light(start) {
    shown = start;
    const [before, after] = [reads, feeds].map((ways) => reached(start, ways));
    const lit = new Set([...before, ...after]);
    view.classList.toggle("tracing", start.length > 0);
    for (const vertex of plan.vertices) {
      vertex.box.classList.toggle("lit", vertex.operators.some((operator) => lit.has(operator.node)));
      for (const row of vertex.box.querySelectorAll("li[data-node]")) row.classList.toggle("lit", lit.has(Number(row.dataset.node)));
    }
    for (const exchange of plan.exchanges) {
      const isLit = (before.has(exchange.from) && before.has(exchange.to)) || (after.has(exchange.from) && after.has(exchange.to));
      for (const part of [exchange.label, exchange.wire, exchange.tip]) part?.classList.toggle("lit", isLit);
    }
  }
}

function reached(start, ways) {
  const found = new Set(start);
  const next = [...start];
  while (next.length) {
    for (const node of ways.get(next.pop()) ?? []) {
      if (found.has(node)) continue;
      found.add(node);
      next.push(node);
    }
  }
  return found;
}
