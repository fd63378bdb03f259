// A far end with a small context, for day_test.go: the mock of model providers, behind a
// front that counts each request and refuses those that are too long, in the vendor's
// words. The agent that it plays reads one file after the other; what comes next follows
// from the request alone.
//
//   node day.mjs MODULES LIMIT FILES PIN...
//
// Of each PIN it counts the requests that don't have it, once one had it.
//
// It prints its address, and answers GET /stats.
import { createRequire } from "node:module";
import { createServer, request } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, limit, files, pins] = [process.argv[2], +process.argv[3], +process.argv[4], process.argv.slice(5)];
const require = createRequire(modules + "/x.js");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { LLMock } = await load("@copilotkit/aimock");
const { countTokens } = await load("gpt-tokenizer");

const name = (n) => "f" + String(n).padStart(4, "0") + ".go";
const text = (m) => (typeof m.content === "string" ? m.content : (m.content ?? []).map((p) => p.text ?? "").join("\n"));

function answer(req) {
  const last = text(req.messages[req.messages.length - 1]);
  const system = req.messages.filter((m) => m.role === "system").map(text).join("\n");
  if (last.includes("about to be shortened") || system.includes("You summarise")) {
    return { content: "The person wants all files to be read in order. So far each was read and understood." };
  }
  let next = 1;
  for (const m of req.messages) {
    for (const c of m.tool_calls ?? []) {
      const at = /f(\d{4})\.go/.exec(c.function.arguments);
      if (at) next = Math.max(next, +at[1] + 1);
    }
  }
  if (next > files) {
    return { toolCalls: [{ name: "complete_task", arguments: JSON.stringify({ summary: "All " + files + " files are read." }) }] };
  }
  return { toolCalls: [{ name: "read", arguments: JSON.stringify({ path: name(next) }) }] };
}

const mock = new LLMock({ port: 0 });
mock.on({ predicate: () => true }, answer);
const upstream = new URL(await mock.start());

// strings are all texts of a value, but not the names of its fields.
function* strings(v) {
  if (typeof v === "string") yield v;
  else if (v && typeof v === "object") for (const x of Object.values(v)) yield* strings(x);
}

const seen = new Set();
const stats = { pins: 0, requests: 0, refused: 0, largest: 0, read: 0, unpinned: 0, tokens: 0 };

function refusal(path, n) {
  if (path.endsWith("/messages")) {
    return { type: "error", error: { type: "invalid_request_error", message: `prompt is too long: ${n} tokens > ${limit} maximum` } };
  }
  const message = `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${n} tokens. Please reduce the length of the messages.`;
  return { error: { message, type: "invalid_request_error", param: "messages", code: "context_length_exceeded" } };
}

const front = createServer((req, res) => {
  if (req.url === "/stats") return res.end(JSON.stringify(stats));
  const parts = [];
  req.on("data", (b) => parts.push(b));
  req.on("end", () => {
    const raw = Buffer.concat(parts);
    const all = [...strings(JSON.parse(raw))];
    const n = countTokens(all.join("\n"));
    stats.requests++;
    if (n > limit) {
      stats.refused++;
      res.writeHead(400, { "content-type": "application/json" });
      return res.end(JSON.stringify(refusal(req.url, n)));
    }
    stats.largest = Math.max(stats.largest, n);
    stats.tokens += n;
    if (!all.some((s) => s.includes("You summarise"))) {
      for (const pin of pins) {
        if (all.some((s) => s.includes(pin))) seen.add(pin);
        else if (seen.has(pin)) stats.unpinned++;
      }
      stats.pins = seen.size;
    }
    const on = request({ host: upstream.hostname, port: upstream.port, path: req.url, method: req.method, headers: { ...req.headers, host: upstream.host } }, (r) => {
      res.writeHead(r.statusCode, r.headers);
      r.pipe(res);
    });
    on.on("error", () => res.destroy());
    on.end(raw);
  });
});
front.listen(0, "127.0.0.1", () => console.log("listening on http://127.0.0.1:" + front.address().port));
