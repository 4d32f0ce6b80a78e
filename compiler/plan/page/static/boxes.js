// What stands in the drawing: a box for each vertex, a label for each exchange.

const MOST_OPERATORS = 14;
const MOST_INDENTED = 8;
const SKEWED = 2; // one subtask has twice its share

function vertexBox(vertex) {
  const title = vertex.operators.map((operator) => operator.name).join(", ");
  const tasks = vertex.parallelism === null ? "auto" : `\u00d7${vertex.parallelism}`;
  const box = element("div.vertex", {
    role: "button", tabindex: 0, "data-number": vertex.number,
    "aria-label": `vertex ${vertex.number}, ${vertex.parallelism === null ? "automatic parallelism" : counted(vertex.parallelism, "task")}: ${title}`,
  });
  box.append(
    element("div.top", {},
      element("b", {}, String(vertex.number)),
      element("span.tasks", { title: "parallelism" }, tasks),
      vertex.keyGroups === null ? null : element("span", {}, counted(vertex.keyGroups, "key group")),
      vertex.slotSharingGroup === "default" ? null
        : element("span.group", { title: `slot sharing group ${vertex.slotSharingGroup}` }, vertex.slotSharingGroup),
      vertex.stage === null ? null : element("span.push", {}, `stage ${vertex.stage}`)),
    element("ol", {}, operatorRows(vertex)),
    element("div.far", { "aria-hidden": "true" }, element("span", {}, vertex.operators.find((operator) => operator.role === "head").name)));
  return box;
}

function operatorRows(vertex) {
  const all = vertex.operators;
  const shown = all.length > MOST_OPERATORS ? all.slice(0, MOST_OPERATORS - 2) : all;
  const depth = (operator) => Math.min(operator.depth, MOST_INDENTED);
  const rows = shown.map((operator, at) => {
    const caller = shown.slice(0, at).findLastIndex((other) => depth(other) < depth(operator));
    const up = operator.role === "branch" ? at - caller : 1;
    const row = element(`li.${operator.role}`, { "--depth": depth(operator), "--up": up, title: `${operator.name} (${operator.callSite})` },
      element("span.name", {}, operator.name || "\u00a0"), element("span.kind", {}, operator.kind));
    row.dataset.node = operator.node;
    return row;
  });
  if (shown.length < all.length) rows.push(element("li.more", {}, `and ${counted(all.length - shown.length, "more operator")}`));
  return rows;
}

function exchangeLabel(exchange) {
  const more = exchange.reasons.length - 1;
  const label = element(`div.exchange.${exchange.key === null ? "plain" : "hash"}`, {
    "data-exchange": exchange.number, title: exchange.reasons.map((rule) => rule.reason).join("\n"),
  });
  // The arrow runs between the two halves, so they are equally high.
  label.append(
    element("div.above", {},
      exchange.sideOutput === null ? null : element("div.clip.tag", {}, `side output ${exchange.sideOutput}`),
      element("div.clip", {},
        element("span.how", {}, exchange.strategy),
        exchange.key === null ? null : element("span.by", {}, ` ${exchange.key}`),
        exchange.input ? element("span.to", {}, ` input ${exchange.input}`) : null)),
    element("div.below", {}, more < 0 ? null : element("div.clip.why", {}, exchange.reasons[0].brief + (more ? ` (+${more})` : ""))));
  return label;
}

// The numbers of a vertex below its operators; again with later ones, its size stays the same.
function showOnBox(box, counts) {
  box.querySelectorAll(".numbers, .shares").forEach((old) => old.remove());
  if (!counts) return;
  const fact = (name, value, mark = "") => element("span", {}, element(`b.${mark}`, {}, value), name);
  const pressed = counts.backPressured > (counts.busy ?? 0);
  box.classList.add("counted");
  box.style.setProperty("--heat", pressed ? "var(--pressed)" : "var(--busy)");
  box.style.setProperty("--heat-share", Math.max(counts.busy ?? 0, counts.backPressured).toFixed(3));
  box.querySelector("ol").after(
    element("div.numbers", {},
      fact("records in", short(counts.recordsIn)), fact("records out", short(counts.recordsOut)), fact("skew", counts.skew.toFixed(2), counts.skew >= SKEWED ? "uneven" : ""),
      fact("bytes in", size(counts.bytesIn)), fact("bytes out", size(counts.bytesOut)), fact("watermark", shortWatermark(counts.watermark))),
    shareBar(counts));
}

function shareBar(counts) {
  const text = `busy ${percent(counts.busy)}, back-pressured ${percent(counts.backPressured)}`;
  return element("div.shares", { title: text, role: "img", "aria-label": text },
    element("i.busy", { "--share": counts.busy ?? 0 }), element("i.pressed", { "--share": counts.backPressured }));
}
