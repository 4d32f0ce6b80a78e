// The arrows: along the points of the layout, with round corners.

const ROUND = 9;
const TIP = 8;

function drawWires(exchanges, lines) {
  byId("wires").replaceChildren(...exchanges.flatMap((exchange, number) => wire(exchange, lines[number])));
  for (const exchange of exchanges) if (exchange.flow) exchange.wire.style.setProperty("--flow", exchange.flow);
}

function wire(exchange, points) {
  const [before, end] = points.slice(-2);
  const length = apart(before, end) || 1;
  const [along, up] = [(end.x - before.x) / length, (end.y - before.y) / length];
  const short = [...points.slice(0, -1), { x: end.x - along * (TIP - 2), y: end.y - up * (TIP - 2) }];
  const classes = [exchange.key === null ? "" : "hash", exchange.sideOutput === null ? "" : "side"].join(" ").trim();
  exchange.wire = drawn("path", { d: rounded(short), class: classes, "data-exchange": exchange.number });
  const [back, aside] = [{ x: end.x - along * TIP, y: end.y - up * TIP }, { x: -up * (TIP / 2), y: along * (TIP / 2) }];
  exchange.tip = drawn("path", { d: `M${end.x} ${end.y}L${back.x + aside.x} ${back.y + aside.y}L${back.x - aside.x} ${back.y - aside.y}z`, class: "tip" });
  return [exchange.wire, exchange.tip];
}

function rounded(points) {
  let path = `M${points[0].x} ${points[0].y}`;
  for (let at = 1; at + 1 < points.length; at += 1) {
    const [before, corner, after] = points.slice(at - 1, at + 2);
    const radius = Math.min(ROUND, apart(before, corner) / 2, apart(corner, after) / 2);
    const from = towards(corner, before, radius);
    const to = towards(corner, after, radius);
    path += `L${from.x} ${from.y}Q${corner.x} ${corner.y} ${to.x} ${to.y}`;
  }
  return `${path}L${points.at(-1).x} ${points.at(-1).y}`;
}

const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

function towards(from, to, distance) {
  const share = distance / (apart(from, to) || 1);
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}
