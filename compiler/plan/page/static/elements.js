// Makes elements. Text goes in as text and never as HTML: names are the user's.

const byId = (id) => document.getElementById(id);
const valueOf = (id) => JSON.parse(byId(id).textContent);

function element(kind, attributes = {}, ...children) {
  const [tag, ...classes] = kind.split(".");
  const made = document.createElement(tag || "div");
  made.className = classes.join(" ").trim();
  dress(made, attributes);
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

function drawn(tag, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(made, attributes);
  return made;
}

function dress(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
}

// Facts as a list of terms; those without a value are left out.
function factList(facts) {
  const rows = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (!rows.length) return null;
  return element("dl", {}, rows.map(([term, value, kind = "dd"]) => [element("dt", {}, term), element(kind, {}, String(value))]));
}
