// Where everything stands. elkjs decides; here is what it is told and what it answers.
//
// An exchange leaves its box at the height of the operator that sends, and comes in at the head's.

const HEAD_Y = 20; // half the bar of a box
const INPUTS_APART = 14;

const LAYOUT = {
  "elk.algorithm": "layered",
  "elk.direction": "RIGHT",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.aspectRatio": "1.7",
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

async function layOut(vertices, exchanges) {
  const laidOut = await (await layoutLibrary()).layout({
    id: "plan",
    layoutOptions: LAYOUT,
    children: vertices.map((vertex) => layoutNode(vertex, exchanges)),
    edges: exchanges.map((exchange) => ({
      id: `exchange ${exchange.number}`,
      sources: [outPort(exchange)],
      targets: [inPort(exchange)],
      labels: [{ id: `label ${exchange.number}`, text: " ", width: exchange.label.offsetWidth, height: exchange.label.offsetHeight,
        layoutOptions: { "elk.edgeLabels.inline": "true", "elk.edgeLabels.placement": "CENTER" } }],
    })),
  });
  return {
    width: laidOut.width,
    height: laidOut.height,
    corners: laidOut.children.map(({ x, y }) => ({ x, y })),
    lines: laidOut.edges.map((edge) => edge.sections.flatMap((part) => [part.startPoint, ...(part.bendPoints ?? []), part.endPoint])),
    labels: laidOut.edges.map((edge) => ({ x: edge.labels[0].x, y: edge.labels[0].y })),
  };
}

const outPort = (exchange) => `vertex ${exchange.source} from ${exchange.from}`;
const inPort = (exchange) => `vertex ${exchange.target} input ${exchange.input}`;

function layoutNode(vertex, exchanges) {
  const { offsetWidth: width, offsetHeight: height } = vertex.box;
  const ports = new Map();
  const inputs = [...new Set(exchanges.filter((exchange) => exchange.target === vertex.number).map(inPort))].sort();
  inputs.forEach((id, position) => {
    const y = Math.min(height - 4, HEAD_Y + position * INPUTS_APART);
    ports.set(id, { id, x: 0, y, layoutOptions: { "elk.port.side": "WEST" } });
  });
  for (const exchange of exchanges) {
    if (exchange.source !== vertex.number) continue;
    const id = outPort(exchange);
    ports.set(id, { id, x: width, y: heightOf(vertex, exchange.from), layoutOptions: { "elk.port.side": "EAST" } });
  }
  return { id: `vertex ${vertex.number}`, width, height, ports: [...ports.values()], layoutOptions: { "elk.portConstraints": "FIXED_POS" } };
}

function heightOf(vertex, node) {
  const row = vertex.box.querySelector(`li[data-node="${node}"]`) ?? vertex.box.querySelector("li.more");
  return row.offsetTop + row.offsetHeight / 2;
}

// The library is compressed in the page, a third of its size, and runs in this thread: a worker
// would need an address to load from.
async function layoutLibrary() {
  const packed = Uint8Array.from(atob(byId("layout-library").textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  document.body.append(Object.assign(document.createElement("script"), { textContent: await new Response(stream).text() }));
  return new window.ELK();
}
