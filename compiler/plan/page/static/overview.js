// A small map of a drawing that is larger than the window.

const MAP_WIDTH = 210;
const MAP_HEIGHT = 120;
const SMALL_MAP = 0.55; // on a phone

function overview(vertices, extent) {
  const map = byId("overview");
  const seen = drawn("rect", { class: "seen" });

  function draw() {
    const scale = Math.min(MAP_WIDTH / extent.width, MAP_HEIGHT / extent.height) * (innerWidth > NARROW ? 1 : SMALL_MAP);
    map.setAttribute("viewBox", `0 0 ${extent.width} ${extent.height}`);
    map.style.width = `${Math.max(40, extent.width * scale)}px`;
    map.style.height = `${Math.max(28, extent.height * scale)}px`;
    const rectangle = ({ box }) => drawn("rect", { x: box.offsetLeft, y: box.offsetTop, width: box.offsetWidth, height: box.offsetHeight });
    map.replaceChildren(...vertices.map(rectangle), seen);
  }

  function follow(at, room) {
    const [x, y, width, height] = [-at.x, -at.y, room.width, room.height].map((length) => length / at.scale);
    const whole = x <= 0 && y <= 0 && x + width >= extent.width && y + height >= extent.height;
    map.toggleAttribute("hidden", whole);
    if (!whole) dress(seen, { x, y, width, height });
  }

  function onPress(move) {
    const go = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
      move(point.x, point.y);
    };
    map.addEventListener("pointerdown", (event) => {
      map.setPointerCapture(event.pointerId);
      go(event);
    });
    map.addEventListener("pointermove", (event) => event.buttons && go(event));
  }

  return { draw, follow, onPress };
}
