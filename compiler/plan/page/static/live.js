// Follows a job that runs, on a page that `opchain run --serve` serves; shows a run that was saved as it ended.

const THICKEST = 5;

function followJob(plan, page, showNumbers) {
  const strip = runStrip(plan, page, () => page.port.resize());
  page.run = strip.run;
  if (strip.run.status) {
    byId("live").hidden = false;
    take(strip.run);
  }
  const address = document.documentElement.dataset.updates;
  if (!address) return;
  byId("live").hidden = false;
  showActions(address.split("/")[0]);
  tell("waiting", "waiting");
  const events = new EventSource(address + location.search);
  events.addEventListener("message", (event) => {
    const update = JSON.parse(event.data);
    if (update.jobs) showJobs(update.jobs, Number(address.split("/")[0]));
    if (!update.status) return;
    strip.take(update);
    take(strip.run);
    if (update.isOver) events.close();
  });
  // The browser tries again by itself; until then the numbers are those of a while ago.
  events.addEventListener("error", () => tell("lost", "no connection", ...[...byId("live").children].slice(1).map((part) => part.textContent)));

  function take(run) {
    tell(run.isOver ? `over ${run.status}` : "running", isLive() || run.isOver ? run.status : `was ${run.status}`, since(run), liveFacts(run));
    showStates(plan, run);
    showSplits(plan, run);
    // Vertices that have not begun have no numbers yet.
    if (run.numbers) showNumbers({ ...valueOf("numbers"), ...run.numbers }, countedAt(run));
    showFlows(plan, run);
    for (const name of ["stop", "cancel"]) byId(name).disabled = run.isOver;
  }
}

function tell(kind, status, time = "", text = "") {
  const live = byId("live");
  live.className = kind;
  [status, time, text].forEach((part, at) => { live.children[at].textContent = part; });
  live.title = [time, text].filter(Boolean).join("  \u00b7  ");
}

// How long a job has run; in a file also when that was.
function since(run) {
  const ran = nowOf(run) > begunAt(run) ? `${run.isOver ? "ran" : "up"} ${milliseconds(nowOf(run) - begunAt(run))}` : "";
  return [ran, isLive() ? "" : `${run.isOver ? "ended" : "saved"} ${isoTime(run.at).slice(0, 16)} UTC`].filter(Boolean).join("  \u00b7  ");
}

function liveFacts(run) {
  const { epochs, tasks } = run;
  const epoch = epochs.at(-1);
  if (epoch) {
    return [
      `epoch ${grouped(epoch.epoch)} in ${milliseconds(epoch.durationMs)}`, `${short(Math.round(epoch.recordsPerSecond))} records/s`,
      epoch.stateBytes ? `state ${size(epoch.stateBytes)}` : "", behind(epoch.watermarkLagMs),
    ].filter(Boolean).join("  \u00b7  ");
  }
  return tasks?.all ? `${grouped(tasks.done)} of ${counted(tasks.all, "task")} done` : "";
}

// When the watermarks of a run were read.
const countedAt = (run) => run.epochs.at(-1)?.at ?? run.at;
const nowOf = (run) => (run.isOver || !isLive() ? run.at : Math.max(run.at, Date.now()));
const begunAt = (run) => Math.min(...Object.values(run.spans ?? {}).map(([begun]) => begun), run.at);

// Event time that is no time of day is behind nothing.
function behind(lag) {
  return lag !== null && lag >= 0 && lag < 1e11 ? `${milliseconds(lag)} behind` : "";
}

function showStates(plan, run) {
  for (const vertex of plan.vertices) {
    const state = run.states?.[vertex.id] ?? "waiting";
    for (const name of Object.keys(STATE_WORDS)) vertex.box.classList.toggle(`is-${name}`, name === state);
    for (const word of vertex.box.querySelectorAll(".state-word")) word.textContent = STATE_WORDS[state];
  }
}

// Of sources with partitions, such as Kafka's: how many there are, and the records that they have left.
function showSplits(plan, run) {
  const all = run.epochs.at(-1)?.splits ?? {};
  for (const vertex of plan.vertices) {
    for (const operator of vertex.operators) {
      operator.splits = all[operator.id] ?? null;
      const row = vertex.box.querySelector(`li[data-node="${operator.node}"]`);
      if (!operator.splits || !row) continue;
      const names = Object.keys(operator.splits);
      const topics = new Set(names.map((name) => name.replace(/-[0-9]+$/, "")));
      const lag = Object.values(operator.splits).reduce((sum, split) => sum + (split.lag ?? 0), 0);
      row.querySelector(".kind").textContent = [
        topics.size === 1 ? [...topics][0] : counted(topics.size, "topic"), counted(names.length, "partition"), `lag ${short(lag)}`].join(" \u00b7 ");
    }
  }
}

// How many records an exchange carries: what its only reader gets, else what its sender emits.
function showFlows(plan, run) {
  const alone = (side, number) => plan.exchanges.filter((exchange) => exchange[side] === number).length === 1;
  for (const exchange of plan.exchanges) {
    const [source, target] = [exchange.source, exchange.target].map((number) => plan.vertices[number - 1]);
    const [from, to] = [source, target].map((vertex) => run.numbers?.[vertex.id]);
    const sender = source.operators.find((operator) => operator.node === exchange.from);
    const rate = (alone("target", exchange.target) ? to?.rateIn : undefined) ?? (alone("source", exchange.source) ? from?.rateOut : from?.operators[sender.id]?.rateOut) ?? 0;
    exchange.flow = run.isOver ? 0 : Math.min(THICKEST, Math.log10(1 + rate)).toFixed(2);
    exchange.wire?.style.setProperty("--flow", exchange.flow);
    const shown = exchange.label.querySelector(".rate");
    if (!shown) continue;
    shown.textContent = run.isOver || !rate ? "" : `${short(Math.round(rate))}/s`;
    shown.hidden = run.isOver;
  }
}

function showJobs(jobs, number) {
  const list = byId("jobs");
  list.hidden = jobs.length < 2;
  list.replaceChildren(...jobs.map((job, at) => element("option", { value: at + 1, ...(at + 1 === number ? { selected: "" } : {}) }, `${job.name} (${job.status})`)));
  list.onchange = () => location.assign(`/${list.value}${location.search}`);
}

// Only the address that opchain printed has the token; a page that is served without one stops nothing.
function showActions(number) {
  const token = new URLSearchParams(location.search).get("token");
  byId("actions").hidden = false;
  byId("save").href = `/${number}/file${location.search}`;
  for (const name of ["stop", "cancel"]) {
    const button = byId(name);
    button.hidden = !token;
    button.addEventListener("click", async () => {
      if (button.dataset.asked !== "yes") return askAgain(button);
      settle(button);
      button.disabled = true;
      try {
        const answer = await fetch(`/${number}/${name}`, { method: "POST", headers: { "X-Opchain-Token": token } });
        say(await answer.text(), !answer.ok);
        button.disabled = answer.ok;
      } catch {
        say("There is no connection to the job.", true);
        button.disabled = false;
      }
    });
    button.addEventListener("blur", () => settle(button));
  }
}

function askAgain(button) {
  button.dataset.asked = "yes";
  button.dataset.text = button.textContent;
  button.textContent = "Sure?";
}

function settle(button) {
  if (button.dataset.asked !== "yes") return;
  button.dataset.asked = "";
  button.textContent = button.dataset.text;
}

function say(text, isError) {
  const place = byId("said");
  place.hidden = false;
  place.className = isError ? "error" : "";
  place.textContent = text;
}
