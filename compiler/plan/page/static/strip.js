// The strip below the drawing: what a run has done so far, in tabs.

const EPOCHS_DRAWN = 120;
const PHASE_NAMES = ["waiting", "tasks", "checkpoint", "commit"];

function runStrip(plan, page, onFold) {
  const run = { ...(valueOf("run") ?? {}), epochs: [...(valueOf("run")?.epochs ?? [])] };
  const names = new Map(plan.vertices.flatMap((vertex) => [[vertex.id, vertex.name], ...vertex.operators.map((operator) => [operator.id, operator.name])]));
  const tabs = [
    ["Epochs", () => epochsSheet(run), () => run.epochs.length],
    ["Vertices", () => verticesSheet(plan, run, page, draw), () => true],
    ["Checkpoints", () => checkpointsSheet(run), () => run.epochs.length],
    ["Exceptions", () => exceptionsSheet(plan, run, names, page), () => true],
    ["Watermarks", () => watermarksSheet(plan, run), () => run.numbers],
    ["Skew", () => skewSheet(plan, run), () => run.numbers],
    ["Timeline", () => timelineSheet(plan, run), () => Object.keys(run.spans ?? {}).length],
    ["Configuration", () => configurationSheet(run), () => run.settings?.length],
  ];
  let shown = null;
  const bar = byId("tabs");
  const sheet = byId("sheet");
  const buttons = tabs.map(([name]) => element("button", { role: "tab", "aria-controls": "sheet", onclick: () => open(name) }, name));
  bar.replaceChildren(...buttons);
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.stopPropagation();
    const visible = buttons.filter((button) => !button.hidden);
    visible[(visible.indexOf(document.activeElement) + step + visible.length) % visible.length].focus();
  });

  function open(name) {
    shown = name === shown ? null : name;
    draw();
    onFold();
  }

  function draw() {
    tabs.forEach(([name, , hasContents], at) => {
      buttons[at].hidden = !hasContents();
      buttons[at].setAttribute("aria-selected", String(name === shown));
    });
    const failures = run.exceptions?.length ?? 0;
    const exceptions = buttons[tabs.findIndex(([name]) => name === "Exceptions")];
    exceptions.textContent = failures ? `Exceptions (${failures})` : "Exceptions";
    exceptions.classList.toggle("alarming", failures > 0);
    byId("strip").hidden = !run.status;
    const found = tabs.find(([name]) => name === shown);
    sheet.hidden = !found;
    if (!found) return;
    const scrolled = sheet.scrollTop;
    keepFocus(sheet, () => sheet.replaceChildren(...[found[1]()].flat(Infinity).filter(Boolean)));
    sheet.scrollTop = scrolled;
  }

  function take(update) {
    const wasFailed = run.exceptions?.length;
    const wasEmpty = !run.status;
    run.epochs.push(...(update.epochs ?? []));
    run.epochs.splice(0, Math.max(0, run.epochs.length - 1000));
    Object.assign(run, { ...update, epochs: run.epochs });
    if (wasEmpty && innerWidth > NARROW) shown = run.exceptions?.length ? "Exceptions" : run.epochs.length || update.epoch !== undefined ? "Epochs" : "Timeline";
    if (!wasFailed && run.exceptions?.length) shown = "Exceptions";
    if (shown === "Timeline" && run.epochs.length === 1) shown = "Epochs";
    draw();
  }

  if (run.status) take({ ...run, epochs: [] });
  return { take, run };
}

const table = (titles, rows) => element("table.rows", {},
  element("thead", {}, element("tr", {}, titles.map((title) => (title.localName === "th" ? title : element("th", { scope: "col" }, title))))),
  element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell) => (cell instanceof Element && cell.localName === "td" ? cell : element("td", {}, cell)))))));

const clock = (time) => (time ? new Date(time).toISOString().slice(11, 19) : "");
const nothingYet = (text) => element("p.empty", {}, text);

function epochsSheet(run) {
  const epochs = run.epochs.slice(-EPOCHS_DRAWN);
  const card = (title, pick, format) => {
    const values = epochs.map(pick);
    const known = values.filter((value) => value !== null);
    return known.length ? element("figure.card", {}, element("figcaption", {}, element("span", {}, title), element("b", {}, format(known.at(-1)))),
      sparkline(epochs, values, format), element("small", {}, `${format(Math.min(...known))} to ${format(Math.max(...known))}`)) : null;
  };
  const lag = (epoch) => (behind(epoch.watermarkLagMs) ? epoch.watermarkLagMs : null);
  return element("div.cards", {},
    card("Records a second", (epoch) => epoch.recordsPerSecond, (value) => `${short(Math.round(value))}/s`),
    card("Watermark lag", lag, milliseconds),
    phasesCard(epochs),
    card("State", (epoch) => epoch.stateBytes, size));
}

function sparkline(epochs, values, format) {
  const top = Math.max(...values, 0) || 1;
  const x = (at) => (values.length > 1 ? (100 * at) / (values.length - 1) : 50);
  const points = values.flatMap((value, at) => (value === null ? [] : [[x(at), 38 - (34 * value) / top]]));
  const line = points.map(([left, height], at) => `${at ? "L" : "M"}${left.toFixed(2)} ${height.toFixed(2)}`).join("");
  const svg = drawn("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", class: "spark", role: "img", "aria-label": `${values.length} epochs, the last ${format(values.at(-1) ?? 0)}` });
  svg.append(drawn("path", { class: "area", d: points.length ? `${line}L${points.at(-1)[0]} 40L${points[0][0]} 40z` : "" }), drawn("path", { d: points.length > 1 ? line : `${line}h.1` }));
  return underPointer(svg, values.length, (at) => `epoch ${grouped(epochs[at].epoch)}: ${values[at] === null ? "none" : format(values[at])}`);
}

function phasesCard(epochs) {
  const last = epochs.at(-1);
  const top = Math.max(...epochs.map((epoch) => PHASE_NAMES.reduce((sum, name) => sum + (epoch.phases[name] ?? 0), 0))) || 1;
  const width = 100 / Math.max(epochs.length, 12);
  const svg = drawn("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", class: "spark bars", role: "img", "aria-label": "duration of epochs by phase" });
  epochs.forEach((epoch, at) => {
    let y = 40;
    for (const name of ["tasks", "checkpoint", "commit", "waiting"]) {
      const height = (36 * (epoch.phases[name] ?? 0)) / top;
      y -= height;
      svg.append(drawn("rect", { x: at * width, y, width: width * 0.82, height, class: name }));
    }
  });
  const text = (epoch) => PHASE_NAMES.filter((name) => epoch.phases[name] !== undefined).map((name) => `${name} ${milliseconds(epoch.phases[name])}`).join(", ");
  return element("figure.card", {}, element("figcaption", {}, element("span", {}, "Duration"), element("b", {}, milliseconds(last.durationMs))),
    underPointer(svg, Math.max(epochs.length, 12), (at) => (epochs[at] ? `epoch ${grouped(epochs[at].epoch)}: ${text(epochs[at])}` : "")),
    element("small.keys", {}, ["tasks", "checkpoint", "commit", "waiting"].map((name) => element("span", {}, element(`i.${name}`), name))));
}

function underPointer(svg, number, text) {
  const title = drawn("title");
  svg.append(title);
  svg.addEventListener("pointermove", (event) => {
    const { left, width } = svg.getBoundingClientRect();
    const at = Math.min(number - 1, Math.max(0, Math.round(((event.clientX - left) / width) * (number - 1))));
    title.textContent = text(at);
  });
  return svg;
}

function checkpointsSheet(run) {
  const last = run.epochs.at(-1);
  const vertices = Object.keys(last.stateOf ?? {}).length;
  const widest = Math.max(1, ...run.epochs.map((epoch) => epoch.stateBytes));
  return [
    element("p.lead", {}, `A restore from checkpoint ${grouped(last.epoch)} reads ${size(last.stateBytes)} of state`,
      vertices ? ` of ${counted(vertices, "vertex", "vertices")}` : "", `, and then what has come since ${clock(last.at)} UTC. `,
      last.checkpoint ? element("code", {}, last.checkpoint) : null),
    table(["Checkpoint", "At (UTC)", "State", "", "Written", "Entries", "Completed in", "Slowest task"], run.epochs.slice(-50).reverse().map((epoch) => [
      grouped(epoch.epoch), clock(epoch.at), size(epoch.stateBytes), element("td.bar", {}, element("i", { "--share": epoch.stateBytes / widest })),
      size(epoch.writtenBytes), grouped(epoch.stateEntries), milliseconds(epoch.phases.checkpoint ?? 0), milliseconds(epoch.slowestSnapshotMs)])),
  ];
}

// All vertices as rows, in the order of the column that was pressed: what is busiest, slowest or largest comes first.
function verticesSheet(plan, run, page, draw) {
  const last = run.epochs.at(-1);
  const count = (name, format = grouped) => [(vertex) => run.numbers?.[vertex.id]?.[name] ?? null, format];
  const columns = {
    Vertex: [(vertex) => vertex.number, (number) => element("button.link", { onclick: () => page.choose.vertex(number) }, `#${number} ${plan.vertices[number - 1].name}`)],
    State: [(vertex) => STATE_WORDS[run.states?.[vertex.id] ?? "waiting"], String],
    Tasks: [(vertex) => vertex.parallelism, grouped],
    "Records in": count("recordsIn"), "Records out": count("recordsOut"),
    ...(run.isOver ? {} : { "In/s": count("rateIn", (rate) => grouped(Math.round(rate))), "Out/s": count("rateOut", (rate) => grouped(Math.round(rate))) }),
    Busy: count("busy", percent), "Back-pressured": count("backPressured", percent), Skew: count("skew", (skew) => skew.toFixed(2)),
    ...(plan.vertices.some((vertex) => run.numbers?.[vertex.id]?.lateDropped) ? { "Dropped late": count("lateDropped", (dropped) => (dropped ? element("span.uneven", {}, grouped(dropped)) : "")) } : {}),
    ...(last ? { "Held state": [(vertex) => last.stateOf?.[vertex.id] ?? null, size] } : {}),
  };
  const [by, descending] = run.sortedBy ?? ["Vertex", false];
  const sort = (name) => {
    run.sortedBy = [name, name === by ? !descending : name !== "Vertex" && name !== "State"];
    draw();
  };
  const titles = Object.keys(columns).map((name) => element("th", { scope: "col", "aria-sort": name !== by ? null : descending ? "descending" : "ascending" },
    element("button", { onclick: () => sort(name) }, name)));
  const valueOf = columns[by]?.[0] ?? columns.Vertex[0];
  const compared = (one, other) => (one === other ? 0 : one === null ? 1 : other === null ? -1 : (one < other ? -1 : 1) * (descending ? -1 : 1));
  const rows = [...plan.vertices].sort((one, other) => compared(valueOf(one), valueOf(other)));
  const made = table(titles, rows.map((vertex) => Object.entries(columns).map(([name, [pick, format]]) => {
    const value = pick(vertex);
    return element(`td${name === "State" ? `.is-${run.states?.[vertex.id]}` : ""}`, {}, value === null ? "" : format(value));
  })));
  made.classList.add("sorted");
  return made;
}

function exceptionsSheet(plan, run, names, page) {
  const restarts = run.restarts ? element("p.lead", {}, `The job was restarted ${run.restarts === 1 ? "once" : `${run.restarts} times`}.`) : null;
  if (!run.exceptions?.length) return [restarts, nothingYet("Nothing has failed.")];
  const place = (failure) => {
    const text = failure.operator ? `${failure.operator} (${failure.line})` : failure.vertex ? `in ${names.get(failure.vertex)}` : "";
    const vertex = plan.vertices.find(({ id, operators }) => (failure.operator ? operators.some(({ name }) => name === failure.operator) : id === failure.vertex));
    return vertex ? element("button.link", { onclick: () => page.choose.vertex(vertex.number) }, text) : text;
  };
  const facts = (failure) => [
    failure.epoch ? `epoch ${grouped(failure.epoch)}` : "", failure.at ? `${clock(failure.at)} UTC` : "",
    failure.restart ? `restart ${failure.restart} after ${milliseconds(failure.delayMs)}` : restarts ? "no restart followed" : ""].filter(Boolean);
  return [restarts, ...[...run.exceptions].reverse().map((failure) => element("article.failure", {},
    element("h4", {}, failure.title),
    element("p", {}, [place(failure), ...facts(failure)].filter(Boolean).flatMap((fact, at) => (at ? [" \u00b7 ", fact] : [fact]))),
    failure.replay ? element("p.replay", {}, "Replay this epoch: ", element("code", {}, failure.replay)) : null,
    failure.lines.length ? element("pre", {}, failure.lines.join("\n")) : null))];
}

function watermarksSheet(plan, run) {
  const at = countedAt(run);
  const rows = plan.vertices.flatMap((vertex) => vertex.operators.map((operator) => {
    const time = run.numbers[vertex.id]?.operators[operator.id]?.watermark ?? null;
    return { vertex, operator, time, lag: lagOf(time, at) };
  }));
  const longest = Math.max(1, ...rows.map((row) => row.lag ?? 0));
  return table(["Operator", "Vertex", "Watermark", "Behind", ""], rows.map(({ vertex, operator, time, lag }) => [
    operator.name, `#${vertex.number}`, watermark(time), lag === null ? "" : milliseconds(lag), element("td.bar", {}, lag === null ? null : element("i", { "--share": lag / longest }))]));
}

function skewSheet(plan, run) {
  const rows = plan.vertices.flatMap((vertex) => {
    const counts = run.numbers[vertex.id];
    if (!counts?.subtasks.length) return [];
    const all = counts.subtasks.map((task) => task.recordsIn);
    const hottest = all.indexOf(Math.max(...all));
    return [{ vertex, counts, all, hottest, share: all[hottest] / (all.reduce((sum, value) => sum + value, 0) || 1) }];
  }).sort((one, other) => other.counts.skew - one.counts.skew);
  return [
    element("p.lead", {}, "Skew is the busiest subtask's records over the mean: 1 is even, 2 is twice its share."),
    table(["Vertex", "Skew", "Busiest subtask", "Its key groups", "Records of each subtask"], rows.map(({ vertex, counts, all, hottest, share }) => [
      `#${vertex.number} ${vertex.name}`, element(`td${counts.skew >= SKEWED ? ".uneven" : ""}`, {}, counts.skew.toFixed(2)),
      all.length > 1 ? `${hottest}: ${grouped(all[hottest])} (${percent(share)})` : "", all.length > 1 ? keyGroups(vertex, all.length, hottest) : "",
      element("td.subtasks", {}, all.map((value, number) => element(`i${number === hottest && counts.skew >= SKEWED ? ".hot" : ""}`, { "--share": value / (all[hottest] || 1), title: `subtask ${number}: ${counted(value, "record")}` })))])),
    rows.filter(({ counts }) => counts.hotKeys?.records).map(({ vertex, counts, all }) => hotKeys(vertex, counts.hotKeys, all.length)),
  ];
}

// The hottest keys and key groups of the records that come by key.
function hotKeys(vertex, { records, keys, groups }, parallelism) {
  const bar = (count) => element(`td.bar${count * parallelism > records ? ".hot" : ""}`, {}, element("i", { "--share": Math.min(1, count / records) }));
  const share = (count) => percent(Math.min(1, count / records));
  const subtask = (group) => `${Math.floor((group * parallelism) / vertex.keyGroups)}`;
  return element("section.hot-keys", {},
    element("h4", {}, `#${vertex.number} ${vertex.name}`),
    element("div", {},
      keys.length ? table(["Hottest key", "Key group", "Subtask", "Records, about", "Share", ""], keys.map(([key, group, count]) => [
        element("td", { title: key }, element("code", {}, key)), grouped(group), subtask(group), grouped(count), share(count), bar(count)]))
        : nothingYet("No key stands out: each has less than one record in a thousand."),
      table(["Hottest key group", "Subtask", "Records, about", "Share", ""], groups.map(([group, count]) => [
        grouped(group), subtask(group), grouped(count), share(count), bar(count)]))));
}

// As Flink divides key groups among subtasks.
function keyGroups(vertex, parallelism, subtask) {
  if (vertex.keyGroups === null) return "";
  const from = Math.floor((subtask * vertex.keyGroups + parallelism - 1) / parallelism);
  const to = Math.floor(((subtask + 1) * vertex.keyGroups - 1) / parallelism);
  return `${from} to ${to}`;
}

const TICKS_S = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 604800, Infinity];

function timelineSheet(plan, run) {
  const spans = Object.entries(run.spans);
  const begin = Math.min(...spans.map(([, [begun]]) => begun));
  const now = nowOf(run);
  const end = Math.max(now, ...spans.map(([, [, ended]]) => ended ?? now), begin + 1);
  const step = TICKS_S.find((seconds) => (end - begin) / seconds <= 6000) * 1000;
  const ticks = Array.from({ length: Math.floor(end / step) - Math.floor(begin / step) }, (_, at) => (Math.floor(begin / step) + 1 + at) * step);
  const tick = (time) => element("i", { "--from": (time - begin) / (end - begin) }, step < 864e5 ? clock(time) : isoTime(time).slice(5, 10));
  const axis = element("div.axis", {}, element("span", {}, "UTC"), element("span.track", {}, ticks.map(tick)), element("span"));
  return element("div.timeline", {}, axis, plan.vertices.map((vertex) => {
    const span = run.spans[vertex.id];
    const [from, to] = span ? [span[0], span[1] ?? now] : [begin, begin];
    return element("div", {}, element("span.name", { title: vertex.name }, `#${vertex.number} ${vertex.name}`),
      element("span.track", {}, span ? element(`i.${run.states[vertex.id]}`, { "--from": (from - begin) / (end - begin), "--share": (to - from) / (end - begin) }) : null),
      element("span.time", {}, span ? milliseconds(to - from) : "not started"));
  }));
}

function configurationSheet(run) {
  return table(["Setting", "Value", ""], run.settings.map((setting) => [element("td", {}, element("code", {}, setting.key)), setting.value || "\u2013", setting.isDefault ? "default" : element("b", {}, "set")]));
}
