// Where everything stands. elkjs decides; here is what it is told and what it answers.
//
// An exchange leaves its box at the height of the operator that sends, and comes in at the head's.

const HEAD_Y = 20; // half the bar of a box
const INPUTS_APART = 14;

const LAYOUT = {
  "elk.algorithm": "layered",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.padding": "[top=24,left=24,bottom=24,right=24]",
  "elk.spacing.nodeNode": "34",
  "elk.spacing.edgeNode": "18",
  "elk.spacing.edgeEdge": "14",
  "elk.spacing.componentComponent": "56",
  "elk.layered.spacing.nodeNodeBetweenLayers": "30",
  "elk.layered.spacing.edgeNodeBetweenLayers": "18",
  "elk.layered.spacing.edgeEdgeBetweenLayers": "14",
  "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
  "elk.layered.nodePlacement.favorStraightEdges": "true",
  "elk.layered.considerModelOrder.strategy": "PREFER_EDGES",
  "elk.layered.thoroughness": "10",
};

// Long chains are folded into rows.
const FOLDED = {
  "elk.layered.wrapping.strategy": "MULTI_EDGE",
  "elk.layered.wrapping.additionalEdgeSpacing": "24",
};

async function layOut(vertices, exchanges, direction, folded = {}) {
  const laidOut = await (await layoutLibrary()).layout({
    id: "plan",
    layoutOptions: { ...LAYOUT, ...folded, "elk.direction": direction, "elk.aspectRatio": direction === "DOWN" ? "0.7" : "1.7" },
    children: vertices.map((vertex) => layoutNode(vertex, exchanges, direction)),
    edges: exchanges.map((exchange) => ({
      id: `exchange ${exchange.number}`,
      sources: [outPort(exchange)],
      targets: [inPort(exchange)],
      labels: [{ id: `label ${exchange.number}`, text: " ", width: exchange.label.offsetWidth, height: exchange.label.offsetHeight,
        layoutOptions: { "elk.edgeLabels.inline": "true", "elk.edgeLabels.placement": "CENTER" } }],
    })),
  });
  return {
    direction,
    width: laidOut.width,
    height: laidOut.height,
    corners: laidOut.children.map(({ x, y }) => ({ x, y })),
    lines: laidOut.edges.map((edge) => edge.sections.flatMap((part) => [part.startPoint, ...(part.bendPoints ?? []), part.endPoint])),
    labels: laidOut.edges.map((edge) => ({ x: edge.labels[0].x, y: edge.labels[0].y })),
  };
}

// To the right, as text is read; down where the window is narrow. A long plan goes down, or is folded into rows, if it is
// larger then.
async function bestLayout(vertices, exchanges, room) {
  if (room.width < NARROW) return layOut(vertices, exchanges, "DOWN");
  const right = await layOut(vertices, exchanges, "RIGHT");
  const scale = ({ width, height }) => Math.min(room.width / width, room.height / height);
  const isLarge = vertices.length > MOST_TRIED;
  if (scale(right) > LONG || (isLarge && exchanges.length > vertices.length)) return right;
  const others = [await layOut(vertices, exchanges, "RIGHT", FOLDED)];
  if (!isLarge) others.unshift(await layOut(vertices, exchanges, "DOWN"));
  const best = others.reduce((one, other) => (scale(other) > scale(one) ? other : one));
  return scale(best) > scale(right) * BETTER ? best : right;
}

const LONG = 0.6; // a drawing that is seen whole at this scale is well as it is
const BETTER = 1.2;
const MOST_TRIED = 120; // of more vertices, other layouts of all but chains take seconds

const outPort = (exchange) => `vertex ${exchange.source} from ${exchange.from}`;
const inPort = (exchange) => `vertex ${exchange.target} input ${exchange.input}`;

function layoutNode(vertex, exchanges, direction) {
  const { offsetWidth: width, offsetHeight: height } = vertex.box;
  const inputs = [...new Set(exchanges.filter((exchange) => exchange.target === vertex.number).map(inPort))].sort();
  const outputs = [...new Set(exchanges.filter((exchange) => exchange.source === vertex.number).map(outPort))];
  const ports = [];
  const add = (id, x, y, side) => ports.push({ id, x, y, layoutOptions: { "elk.port.side": side } });
  if (direction === "DOWN") {
    const apart = (at, all) => (width * (at + 1)) / (all.length + 1);
    inputs.forEach((id, at) => add(id, apart(at, inputs), 0, "NORTH"));
    outputs.forEach((id, at) => add(id, apart(at, outputs), height, "SOUTH"));
  } else {
    inputs.forEach((id, at) => add(id, 0, Math.min(height - 4, HEAD_Y + at * INPUTS_APART), "WEST"));
    for (const id of outputs) add(id, width, heightOf(vertex, exchanges.find((exchange) => outPort(exchange) === id).from), "EAST");
  }
  return { id: `vertex ${vertex.number}`, width, height, ports, layoutOptions: { "elk.portConstraints": "FIXED_POS" } };
}

function heightOf(vertex, node) {
  const row = vertex.box.querySelector(`li[data-node="${node}"]`) ?? vertex.box.querySelector("li.more");
  return row.offsetTop + row.offsetHeight / 2;
}

// The library is compressed in the page, a third of its size, and runs in this thread: a worker
// would need an address to load from.
async function layoutLibrary() {
  if (window.ELK) return new window.ELK();
  const packed = Uint8Array.from(atob(byId("layout-library").textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  document.body.append(Object.assign(document.createElement("script"), { textContent: await new Response(stream).text() }));
  return new window.ELK();
}
