// On paper: the drawing on one page, as large as it can be, and the plan as text behind it.
//
// A plan that would be too small on A4 gets a page of its own size, which a printer scales and a PDF keeps.

const PAPER = { width: 1040, height: 600 }; // A4 across without its margins, in CSS pixels
const LEAST_ON_PAPER = 0.5;
const LARGEST_PAGE = 14000; // PDF readers stop at 200 inches

function preparePrinting(extent) {
  const rule = byId("paper") ?? document.head.appendChild(element("style", { id: "paper" }));
  const scale = Math.min(1, PAPER.width / extent.width, PAPER.height / extent.height);
  const isPoster = scale < LEAST_ON_PAPER;
  const poster = Math.min(LEAST_ON_PAPER, LARGEST_PAGE / extent.width, LARGEST_PAGE / extent.height);
  const used = isPoster ? poster : scale;
  const page = isPoster ? `${Math.max(1123, Math.ceil(extent.width * used) + 80)}px ${Math.max(794, Math.ceil(extent.height * used) + 190)}px` : "A4 landscape";
  rule.textContent = `@page { size: ${page}; margin: 10mm; }`;
  dress(document.documentElement, { "--paper-width": Math.max(PAPER.width, extent.width * used), "--paper-height": extent.height * used, "--paper-scale": used });
}
