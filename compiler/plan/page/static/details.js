// The panel: everything about one vertex or one exchange.

function vertexDetails(plan, vertex, page, choose) {
  const counts = page.counts?.[vertex.id];
  const span = page.run?.spans?.[vertex.id];
  const reads = plan.exchanges.filter((exchange) => exchange.target === vertex.number);
  const feeds = plan.exchanges.filter((exchange) => exchange.source === vertex.number);
  return [
    element("p.what", {}, `Vertex ${vertex.number}`),
    element("h2", {}, vertex.name),
    element("p.lineages", {}, "Show only:", Object.keys(LINEAGES).map((way) => element("button", { onclick: () => page.showAlone(vertex, way) }, way))),
    factList([
      ["State", page.run?.states && STATE_WORDS[page.run.states[vertex.id] ?? "waiting"]],
      ["Started", span && `${isoTime(span[0]).slice(0, 19)} UTC`],
      ["Duration", span && milliseconds((span[1] ?? nowOf(page.run)) - span[0])],
      ["Parallelism", vertex.parallelism ?? "automatic"],
      ["Max parallelism", vertex.maxParallelism],
      ["Key groups", vertex.keyGroups],
      ["Stage", vertex.stage],
      ["Slot sharing", vertex.slotSharingGroup],
      ["Id", vertex.id, "dd.mono"],
    ]),
    counts ? countsPart(counts) : null,
    vertex.code === null ? null : codePart(vertex.code),
    part(counted(vertex.operators.length, "operator"), vertex.operators.map((operator) => operatorCard(operator, counts?.operators[operator.id]))),
    part("Reads", reads.map((exchange) => exchangeCard(plan, exchange, exchange.source, choose))),
    part("Feeds", feeds.map((exchange) => exchangeCard(plan, exchange, exchange.target, choose))),
  ];
}

function exchangeDetails(plan, exchange, choose) {
  const end = (number) => element("button.card", { onclick: () => choose.vertex(number) },
    element("span.kind", {}, `vertex ${number}`), element("span.name", {}, plan.vertices[number - 1].name));
  return [
    element("p.what", {}, "Exchange"),
    element("h2", {}, howText(exchange)),
    factList([
      ["Ship strategy", exchange.strategy],
      ["Key", exchange.key, "dd.mono"],
      ["Side output", exchange.sideOutput],
      ["Input", exchange.input || null],
      ["Pattern", exchange.pattern, "dd.mono"],
      ["Result", exchange.resultType, "dd.mono"],
    ]),
    part("Why it is cut here", exchange.reasons.map((rule) => element("div.card", {},
      element("span.kind", {}, rule.code), element("div.name", {}, rule.reason), element("p.advice", {}, rule.advice)))),
    part("From", [end(exchange.source)]),
    part("To", [end(exchange.target)]),
  ];
}

function part(title, contents) {
  return contents.length ? [element("h3", {}, title), ...contents] : null;
}

function howText(exchange) {
  return exchange.strategy + (exchange.key === null ? "" : ` by ${exchange.key}`);
}

function operatorCard(operator, counts) {
  return element("div.card", {},
    element("span.kind", {}, operator.kind),
    element("div.name", {}, operator.name),
    element("p.mono", {}, operator.callSite),
    operator.description ? element("p", {}, operator.description) : null,
    factList([
      ["State", operator.state],
      ["Key", operator.keys.join(", "), "dd.mono"],
      ["Reads", operator.sideOutputs.map((tag) => `side output ${tag}`).join(", ")],
      ["Records", counts && `${grouped(counts.recordsIn)} in, ${grouped(counts.recordsOut)} out`],
      ["Watermark", counts && watermark(counts.watermark)],
      ["Skew", counts && counts.skew.toFixed(2)],
      ["uid", operator.uid],
      ["uid hash", operator.uidHash, "dd.mono"],
      ["Id", operator.id, "dd.mono"],
    ]),
    operator.splits ? splitsTable(operator.splits) : null);
}

function splitsTable(splits) {
  const most = Math.max(1, ...Object.values(splits).map((split) => split.lag ?? 0));
  return element("table.splits", {},
    element("thead", {}, element("tr", {}, ["Partition", "", "Next offset", "Lag"].map((title) => element("th", { scope: "col" }, title)))),
    element("tbody", {}, Object.entries(splits).map(([name, split]) => element("tr", {},
      element("td", {}, name), element("td.bar", {}, element("i", { "--share": (split.lag ?? 0) / most })),
      element("td", {}, split.next === undefined ? "" : grouped(split.next)), element("td", {}, split.lag === undefined ? "" : grouped(split.lag))))));
}

function exchangeCard(plan, exchange, end, choose) {
  return element("button.card", { onclick: () => choose.exchange(exchange.number) },
    element("span.kind", {}, `vertex ${end}`),
    element("div.name", {}, howText(exchange)),
    element("p", {}, plan.vertices[end - 1].name),
    exchange.reasons.map((rule) => element("p", {}, rule.brief)));
}

function codePart(code) {
  const copy = element("button.copy", { onclick: () => copyText(code, copy) }, "Copy");
  return [element("h3", {}, "Generated code", copy), sourceCode(code)];
}

// A frame in a notebook may be denied the clipboard: then the text is selected, ready to be copied.
async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.closest("aside").querySelector("pre"));
    button.textContent = "Selected";
  }
}

function countsPart(counts) {
  const most = Math.max(1, ...counts.subtasks.map((task) => task.recordsIn));
  const cell = (text) => element("td", {}, text);
  const rows = counts.subtasks.map((task, number) => element("tr", {},
    cell(String(number)),
    element("td.bar", {}, element("i", { "--share": task.recordsIn / most })),
    cell(grouped(task.recordsIn)), cell(grouped(task.recordsOut)), cell(percent(task.busy))));
  const title = (text) => element("th", { scope: "col" }, text);
  return [
    element("h3", {}, "Numbers"),
    shareBar(counts),
    factList([
      ["Busy", percent(counts.busy)],
      ["Back-pressured", percent(counts.backPressured)],
      ["Idle", percent(counts.idle)],
      ["Records", `${grouped(counts.recordsIn)} in, ${grouped(counts.recordsOut)} out`],
      ["Bytes", `${size(counts.bytesIn)} in, ${size(counts.bytesOut)} out`],
      ["Dropped late", counts.lateDropped ? counted(counts.lateDropped, "record") : null],
      ["Watermark", watermark(counts.watermark)],
      ["Mail", `${grouped(counts.mails)}, at most ${grouped(counts.mailQueue)} waiting`],
      ["Mail latency", counts.mailLatencyMs === null ? null : `95 % within ${counts.mailLatencyMs} ms`],
    ]),
    element("h3", {}, `${counted(counts.subtasks.length, "subtask")}, skew ${counts.skew.toFixed(2)}`),
    element("table", {}, element("thead", {}, element("tr", {}, title("Subtask"), title(""), title("In"), title("Out"), title("Busy"))),
      element("tbody", {}, rows)),
  ];
}
