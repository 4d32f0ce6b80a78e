// Generated Python with its keywords, texts and comments told apart.

const TOKENS = new RegExp([
  /(?<c>#[^\n]*)/,
  /(?<s>"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')/,
  /\b(?<k>and|as|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False)\b/,
].map((token) => token.source).join("|"), "g");

function sourceCode(text) {
  const code = element("code");
  let done = 0;
  for (const found of text.matchAll(TOKENS)) {
    const [kind, token] = Object.entries(found.groups).find(([, value]) => value !== undefined);
    code.append(text.slice(done, found.index), element(`span.${kind}`, {}, token));
    done = found.index + token.length;
  }
  code.append(text.slice(done));
  return element("pre", { tabindex: 0, "aria-label": "generated code" }, code);
}
