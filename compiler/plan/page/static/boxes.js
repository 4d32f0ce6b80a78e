// What stands in the drawing: a box for each vertex, a label for each exchange.

const MOST_OPERATORS = 14;
const MOST_INDENTED = 8;
const SKEWED = 2; // one subtask has twice its share

const isLive = () => Boolean(document.documentElement.dataset.updates);
const hasRun = () => Boolean(valueOf("run")?.status);
const STATE_WORDS = { waiting: "not started", running: "running", finished: "finished", failed: "failed", canceled: "canceled" };

function vertexBox(vertex) {
  const title = vertex.operators.map((operator) => operator.name).join(", ");
  const tasks = vertex.parallelism === null ? "auto" : `\u00d7${vertex.parallelism}`;
  const family = familyOf(vertex);
  const hasState = vertex.operators.some((operator) => operator.state && operator.family !== "source");
  const box = element(`div.vertex.${family}${hasState ? ".has-state" : ""}`, {
    role: "button", tabindex: 0, "data-number": vertex.number,
    "aria-label": `vertex ${vertex.number}, ${vertex.parallelism === null ? "automatic parallelism" : counted(vertex.parallelism, "task")}: ${title}`,
  });
  const facts = [tasks, vertex.operators.length > 1 ? `${vertex.operators.length} ops` : "", hasState ? "state" : ""];
  box.append(
    element("div.top", {},
      element("b", {}, String(vertex.number)),
      element("span.tasks", { title: "parallelism" }, tasks),
      vertex.keyGroups === null ? null : element("span", { title: "the number of key groups is the maximum parallelism" }, counted(vertex.keyGroups, "key group")),
      vertex.slotSharingGroup === "default" ? null
        : element("span.group", { title: `slot sharing group ${vertex.slotSharingGroup}` }, vertex.slotSharingGroup),
      element("span.push.state-word", {}, isLive() || hasRun() ? STATE_WORDS.waiting : ""),
      vertex.stage === null ? null : element("span.stage", { title: "the Spark stage that runs it" }, `stage ${vertex.stage}`)),
    element("ol", {}, operatorRows(vertex)),
    element("div.far", { "aria-hidden": "true" }, glyph(family),
      element("span.title", {}, farName(vertex)),
      element("span.facts", {}, facts.filter(Boolean).join(" \u00b7 ")),
      isLive() || hasRun() ? element("span.state-word", {}, STATE_WORDS.waiting) : null));
  return box;
}

// The name of what gives a vertex its glyph, which from far away is all that is left of it.
function farName(vertex) {
  const head = vertex.operators.find((operator) => operator.role === "head");
  const telling = head.family === "plain" ? vertex.operators.find((operator) => operator.family === familyOf(vertex)) : null;
  // The glyph says which of them are sources and sinks.
  return (telling && telling.family !== "sink" ? telling : head).name.replace(/^(Source|Sink): (?=.)/, "");
}

function operatorRows(vertex) {
  const all = vertex.operators;
  const shown = all.length > MOST_OPERATORS ? all.slice(0, MOST_OPERATORS - 2) : all;
  const depth = (operator) => Math.min(operator.depth, MOST_INDENTED);
  const rows = shown.map((operator, at) => {
    const caller = shown.slice(0, at).findLastIndex((other) => depth(other) < depth(operator));
    const up = operator.role === "branch" ? at - caller : 1;
    const row = element(`li.${operator.role}`, { "--depth": depth(operator), "--up": up, title: `${operator.name} (${operator.callSite})` },
      glyph(operator.family), element("span.name", {}, operator.name || "\u00a0"), element("span.kind", {}, operator.kind));
    row.dataset.node = operator.node;
    return row;
  });
  if (shown.length < all.length) rows.push(element("li.more", {}, `and ${counted(all.length - shown.length, "more operator")}`));
  return rows;
}

// How records move, in a word; why not straight on, when the pointer is on it.
function exchangeLabel(exchange) {
  return element(`div.exchange.${exchange.key === null ? "plain" : "hash"}`, { "data-exchange": exchange.number, "aria-label": exchangeHint(exchange).join(" ") },
    exchange.sideOutput === null ? null : element("span.tag", { title: "side output" }, exchange.sideOutput),
    element("span.how", {}, exchange.strategy),
    exchange.key === null ? null : element("span.by", {}, exchange.key),
    exchange.input ? element("span.to", {}, `input ${exchange.input}`) : null,
    exchange.hasRate ? element("span.rate") : null);
}

const STRATEGIES = {
  FORWARD: "Each subtask sends to the one of the same number.",
  HASH: "Records move to the subtask of their key.",
  REBALANCE: "Records go to all subtasks in turn.",
  RESCALE: "Records go in turn to a part of the subtasks.",
  SHUFFLE: "Records go to random subtasks.",
  BROADCAST: "Every subtask gets every record.",
  GLOBAL: "All records go to the first subtask.",
  CUSTOM: "The program's partitioner chooses the subtask.",
};

const exchangeHint = (exchange) => [
  STRATEGIES[exchange.strategy] ?? "",
  ...(exchange.reasons.length ? ["Not chained, because"] : []),
  ...exchange.reasons.map((rule) => `\u2022 ${rule.brief}`),
].filter(Boolean);

// The numbers of a vertex below its operators; again with later ones, its size stays the same.
function showOnBox(vertex, counts, at) {
  const box = vertex.box;
  box.querySelectorAll(".numbers, .shares").forEach((old) => old.remove());
  if (!counts) return;
  const fact = (name, value, mark = "") => element("span", {}, element(`b.${mark}`, {}, value), name);
  const pressed = counts.backPressured > (counts.busy ?? 0);
  // What has not begun or is over glows no more, whatever its tasks did.
  const isAtRest = ["waiting", "finished", "failed", "canceled"].some((state) => box.classList.contains(`is-${state}`));
  box.classList.add("counted");
  box.style.setProperty("--heat", pressed ? "var(--pressed)" : "var(--busy)");
  box.style.setProperty("--heat-share", isAtRest ? 0 : Math.max(counts.busy ?? 0, counts.backPressured).toFixed(3));
  const pace = short(Math.round(Math.max(counts.rateIn ?? 0, counts.rateOut ?? 0)));
  // From far away the numbers of what runs tell more than that it runs.
  if (isLive() && box.classList.contains("is-running")) {
    box.querySelector(".far .state-word").textContent = `${pace}/s \u00b7 ${pressed ? `back-pressured ${percent(counts.backPressured)}` : `busy ${percent(counts.busy)}`}`;
  }
  showLate(vertex, counts);
  const time = emittedWatermark(vertex, counts);
  const lag = lagOf(time, at);
  box.querySelector("ol").after(
    element("div.numbers", {},
      fact("records in", short(counts.recordsIn)), fact("records out", short(counts.recordsOut)),
      fact("skew", counts.skew.toFixed(2), counts.skew >= SKEWED ? "uneven" : ""),
      isLive() && !isAtRest ? fact("records/s", pace) : fact("bytes in", size(counts.bytesIn)), fact("bytes out", size(counts.bytesOut)),
      element("span", { title: watermark(time) }, lag === null ? fact("watermark", shortWatermark(time, at)) : fact("watermark lag", milliseconds(lag)))),
    shareBar(counts));
}

// Records that windows have dropped, at the operator that dropped them.
function showLate(vertex, counts) {
  for (const operator of vertex.operators) {
    const row = vertex.box.querySelector(`li[data-node="${operator.node}"]`);
    const dropped = counts.operators[operator.id]?.lateDropped;
    if (!dropped || !row) continue;
    row.querySelector(".late")?.remove();
    row.querySelector(".kind").before(element("span.late", { title: `${counted(dropped, "record")} dropped as late` }, `${short(dropped)} late`));
  }
}

// What a vertex sends on: the least watermark of the operators that no other one of its chain follows.
function emittedWatermark(vertex, counts) {
  const times = vertex.operators
    .filter((operator) => operator.role !== "source" && !vertex.operators.some(({ parent }) => parent === operator.node))
    .map((operator) => counts.operators[operator.id]?.watermark ?? null);
  if (!times.length || times.includes(null)) return null;
  const inTime = times.filter(Number.isInteger);
  return inTime.length ? Math.min(...inTime) : "end";
}

// How far event time is behind; null for what is no time of our days.
function lagOf(time, at) {
  return Number.isInteger(time) && looksLikeDate(time) && at >= time && at - time < 1e11 ? at - time : null;
}

function shareBar(counts) {
  const text = `busy ${percent(counts.busy)}, back-pressured ${percent(counts.backPressured)}, idle ${percent(counts.idle)}`;
  return element("div.shares", { title: text, role: "img", "aria-label": text },
    element("i.busy", { "--share": counts.busy ?? 0 }), element("i.pressed", { "--share": counts.backPressured }));
}
