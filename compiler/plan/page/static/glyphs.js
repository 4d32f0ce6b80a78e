// What tells kinds of operators apart: a glyph each, in a colour each.

const GLYPHS = {
  source: ["source", "M3 3.2v9.6M6 8h7.2M10.2 5l3 3-3 3"],
  state: ["keyed or operator state", "M3 4.6c0-1.9 10-1.9 10 0s-10 1.9-10 0v6.8c0 1.9 10 1.9 10 0V4.6M3 8c0 1.9 10 1.9 10 0"],
  window: ["window", "M2.5 3.5h11v9h-11zM6.2 3.5v9M9.8 3.5v9"],
  join: ["join, several inputs", "M2.5 3.6c4.6 0 3.4 4.4 7 4.4h4M2.5 12.4c4.6 0 3.4-4.4 7-4.4"],
  sink: ["sink", "M13 3.2v9.6M2.8 8H10M7 5l3 3-3 3"],
  plain: ["function", "M8 5.6a2.4 2.4 0 1 0 0 4.8a2.4 2.4 0 1 0 0-4.8z"],
};

function glyph(family) {
  const made = drawn("svg", { viewBox: "0 0 16 16", class: `glyph ${family}`, "aria-hidden": "true" });
  made.append(drawn("path", { d: GLYPHS[family][1] }));
  return made;
}

// A vertex is what its most telling operator is.
const familyOf = (vertex) =>
  ["source", "join", "window", "state", "sink"].find((family) => vertex.operators.some((operator) => operator.family === family)) ?? "plain";

function showLegend(plan, hasNumbers) {
  const used = Object.keys(GLYPHS).filter((family) => plan.vertices.some((vertex) => vertex.operators.some((operator) => operator.family === family)));
  const shares = hasNumbers ? [["busy", "busy"], ["pressed", "back-pressured"], ["idle", "idle"]] : [];
  byId("legend").hidden = false;
  byId("legend").replaceChildren(
    ...used.map((family) => element("span", {}, glyph(family), GLYPHS[family][0])),
    element("span", {}, element("b", {}, "\u00d72"), "parallelism"),
    ...shares.map(([kind, name]) => element("span", {}, element(`i.${kind}`), name)));
}
