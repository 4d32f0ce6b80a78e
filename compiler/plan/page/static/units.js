// Numbers as people read them, the same in every locale.

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
const counted = (number, thing, plural = thing + "s") => `${grouped(number)} ${number === 1 ? thing : plural}`;
const percent = (share) => (share === null ? "unknown" : `${Math.round(share * 100)} %`);

function short(number) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (number >= size) return `${(number / (unit === "k" ? 1e3 : size)).toFixed(1)} ${unit}`;
  }
  return grouped(number);
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) [bytes, unit] = [bytes / 1024, unit + 1];
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}

// Event time has no fixed meaning; what looks like a time of our days is shown as one.
function watermark(time) {
  if (time === null) return "none yet";
  if (time === "end") return "end of input";
  return looksLikeDate(time) ? `${isoTime(time)} UTC` : `${grouped(time)} ms`;
}

function shortWatermark(time, at) {
  if (time === null) return "none";
  if (time === "end") return "end";
  if (!looksLikeDate(time)) return watermark(time);
  const isToday = at && isoTime(at).slice(0, 10) === isoTime(time).slice(0, 10);
  return isToday ? isoTime(time).slice(11, 19) : isoTime(time).slice(0, 16);
}

function milliseconds(time) {
  if (time < 1000) return `${Math.round(time)} ms`;
  if (time < 60000) return `${(time / 1000).toFixed(1)} s`;
  const [large, small, from] = time < 3.6e6 ? ["min", "s", 1000] : time < 8.64e7 ? ["h", "min", 60000] : ["d", "h", 3.6e6];
  const parts = from === 3.6e6 ? 24 : 60;
  const whole = Math.floor(time / from);
  return `${Math.floor(whole / parts)} ${large} ${whole % parts} ${small}`;
}

const looksLikeDate = (time) => time > 1e11 && time < 1e13;
const isoTime = (time) => new Date(time).toISOString().replace("T", " ").replace("Z", "");
