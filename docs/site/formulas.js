// usage: node formulas.js KATEX   answers every line of the input, {"tex": …, "display": …}, by a line {"html": …} or {"error": …}.
const katex = require(process.argv[2]);

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { tex, display } = JSON.parse(line);
  let answer;
  try {
    answer = { html: katex.renderToString(tex, { displayMode: display, throwOnError: true, strict: "error" }) };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
