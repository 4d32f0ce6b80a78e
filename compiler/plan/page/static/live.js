// Follows a job that runs, on a page that `opchain run --serve` serves: numbers come as server-sent events.

function followJob(showNumbers) {
  const address = document.documentElement.dataset.news;
  if (!address) return;
  const live = byId("live");
  const [state, facts] = live.children;
  live.hidden = false;
  tell("waiting", "waiting", "");
  const events = new EventSource(address);
  events.addEventListener("message", (event) => {
    const news = JSON.parse(event.data);
    tell(news.isOver ? "over" : "running", news.status, liveFacts(news));
    // Of a bounded job only vertices with finished tasks have numbers.
    if (news.numbers) showNumbers({ ...valueOf("numbers"), ...news.numbers });
    if (news.isOver) events.close();
  });
  // The browser tries again by itself; until then the numbers are those of a while ago.
  events.addEventListener("error", () => tell("lost", "no connection", facts.textContent));

  function tell(kind, status, text) {
    live.className = kind;
    state.textContent = status;
    facts.textContent = live.title = text;
  }
}

function liveFacts({ epoch, tasks }) {
  if (epoch) {
    return [
      `epoch ${grouped(epoch.epoch)}`, `${short(Math.round(epoch.recordsPerSecond))} records/s`, milliseconds(epoch.durationMs),
      epoch.stateBytes ? `state ${size(epoch.stateBytes)}` : "", behind(epoch.watermarkLagMs),
    ].filter(Boolean).join("  \u00b7  ");
  }
  return tasks ? `${grouped(tasks.done)} of ${counted(tasks.all, "task")} done` : "";
}

// Event time that is no time of day is behind nothing.
function behind(lag) {
  return lag !== null && lag >= 0 && lag < 1e11 ? `${milliseconds(lag)} behind` : "";
}
