// Moves and scales the drawing inside the window.

const LEAST_SCALE = 0.02;
const GREATEST_SCALE = 3;
const READABLE = 0.68; // below, boxes show their name alone
const WHOLE = 0.36; // a drawing that would have to be smaller begins at its left end: names are 9 px high here,
const COMFORTABLE = 0.44; // and 11 px here
const MARGIN = 28;
const LARGEST_FIT = 1.35; // a small plan is drawn larger than life
const NARROW_MARGIN = 12;
const NARROW = 720; // as in the style

function viewport(view, drawing, extent, onMove) {
  const at = { x: 0, y: 0, scale: 1 };

  function apply() {
    if (!extent.width) return; // nothing is drawn yet
    drawing.style.transform = `translate(${at.x}px, ${at.y}px) scale(${at.scale})`;
    drawing.style.setProperty("--scale", at.scale);
    drawing.style.setProperty("--thick", Math.min(6, Math.max(1, 0.55 / at.scale)));
    const pitch = 22;
    view.style.setProperty("--grid-x", `${at.x % pitch}px`);
    view.style.setProperty("--grid-y", `${at.y % pitch}px`);
    view.classList.toggle("far-away", at.scale < READABLE);
    onMove(at, room());
  }

  const room = () => ({ width: view.clientWidth, height: view.clientHeight });
  let isFitted = false; // whole in the window, until somebody moves it

  function moveBy(x, y) {
    isFitted = false;
    at.x += x;
    at.y += y;
    apply();
  }

  function zoom(factor, x = room().width / 2, y = room().height / 2) {
    isFitted = false;
    const scale = Math.min(GREATEST_SCALE, Math.max(LEAST_SCALE, at.scale * factor));
    at.x = x - ((x - at.x) * scale) / at.scale;
    at.y = y - ((y - at.y) * scale) / at.scale;
    at.scale = scale;
    apply();
  }

  // On a phone the legend is below the drawing, not on it.
  const legend = () => 4 + (innerWidth > NARROW ? byId("legend").offsetHeight : 0);
  const margin = () => (view.clientWidth < NARROW ? NARROW_MARGIN : MARGIN);

  function fit(least = LEAST_SCALE) {
    const { width, height } = room();
    const whole = Math.min((width - 2 * margin()) / extent.width, (height - 2 * margin() - legend()) / extent.height, LARGEST_FIT);
    at.scale = Math.max(whole, least);
    at.x = Math.max(margin(), (width - extent.width * at.scale) / 2);
    const spare = height - extent.height * at.scale;
    at.y = Math.min(spare / 2, Math.max(margin(), (spare - legend()) / 2));
    if (spare < 0) at.y = extent.height > extent.width * 1.5 ? margin() : spare / 2;
    isFitted = true;
    apply();
  }

  function begin() {
    fit();
    if (at.scale >= WHOLE) return;
    fit(COMFORTABLE);
    if (at.y < margin()) showBeginning();
    isFitted = false;
  }

  // The boxes of the first screen from their uppermost on, but always the leftmost box.
  function showBeginning() {
    const { width, height } = room();
    const boxes = [...drawing.querySelectorAll(".vertex")].filter((box) => box.offsetLeft * at.scale < width);
    const leftmost = boxes.reduce((first, box) => (box.offsetLeft < first.offsetLeft ? box : first));
    const bottom = (leftmost.offsetTop + leftmost.offsetHeight) * at.scale;
    const top = margin() - Math.min(...boxes.map((box) => box.offsetTop)) * at.scale;
    at.y = drawing.dataset.direction === "DOWN" ? margin() : Math.min(top, height - legend() - margin() - bottom);
    apply();
  }

  function resize() {
    if (isFitted && extent.width) begin();
    else apply();
  }

  function centre(x, y) {
    const { width, height } = room();
    at.x = width / 2 - x * at.scale;
    at.y = height / 2 - y * at.scale;
    apply();
  }

  // Moves only as far as it takes to see a box whole.
  function reveal(box, scale = 0) {
    if (isFitted) begin(); // the panel may just have been opened
    if (scale > at.scale) zoom(scale / at.scale);
    const { width, height } = room();
    const left = box.offsetLeft * at.scale + at.x;
    const top = box.offsetTop * at.scale + at.y;
    const right = left + box.offsetWidth * at.scale;
    const bottom = top + box.offsetHeight * at.scale;
    const x = left < margin() ? margin() - left : Math.min(0, width - margin() - right);
    const y = top < margin() ? margin() - top : Math.min(0, height - margin() - bottom);
    if (x || y) moveBy(x, y);
  }

  listenToPointers(view, moveBy, zoom);
  return { at, moveBy, zoom, fit, centre, reveal, room, begin, resize };
}

function listenToPointers(view, moveBy, zoom) {
  const pointers = new Map();
  let travelled = 0;
  const place = (event) => ({ x: event.clientX, y: event.clientY });

  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top } = view.getBoundingClientRect();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY * unit * 0.0045), event.clientX - left, event.clientY - top);
    else moveBy(-(event.shiftKey ? event.deltaY : event.deltaX) * unit, event.shiftKey ? 0 : -event.deltaY * unit);
  }, { passive: false });

  view.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("#overview")) return;
    pointers.set(event.pointerId, place(event));
    travelled = 0;
  });

  view.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = place(event);
    travelled += apart(before, now);
    if (travelled > 4 && !view.hasPointerCapture(event.pointerId)) view.setPointerCapture(event.pointerId);
    view.classList.toggle("dragged", travelled > 4);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const { left, top } = view.getBoundingClientRect();
      zoom(apart(now, other) / (apart(before, other) || 1), (now.x + other.x) / 2 - left, (now.y + other.y) / 2 - top);
    } else if (travelled > 4) moveBy(now.x - before.x, now.y - before.y);
    pointers.set(event.pointerId, now);
  });

  for (const kind of ["pointerup", "pointercancel"]) {
    view.addEventListener(kind, (event) => {
      pointers.delete(event.pointerId);
      view.classList.remove("dragged");
    });
  }

  // The end of a drag is no click.
  view.addEventListener("click", (event) => {
    if (travelled > 4) event.stopPropagation();
    travelled = 0;
  }, { capture: true });
}
