// A far end for family_test.go: the mock of model providers, which plays an agent that
// starts AGENTS others in the background, some in each answer, and waits for them. What
// comes next follows from the request alone, and so does what an answer takes. The file
// STATS has how many there were, and the tokens read and written.
//
//   node family.mjs MODULES AGENTS STATS TOGETHER
//
// With TOGETHER true the others are answered when all of them have been started, one after
// the other.
//
// It prints its address.
import { writeFileSync, renameSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, agents, stats, together] = [process.argv[2], +process.argv[3], process.argv[4], process.argv[5] === "true"];
const require = createRequire(modules + "/x.js");
const { LLMock } = await import(pathToFileURL(require.resolve("@copilotkit/aimock")).href);

const some = 40; // agents that one answer starts
const sum = { requests: 0, read: 0, written: 0 };
const text = (m) => (typeof m.content === "string" ? m.content : (m.content ?? []).map((p) => p.text ?? "").join("\n"));
const call = (name, args) => ({ name, arguments: JSON.stringify(args) });

function takes(read, toolCalls) {
  sum.requests++, (sum.read += read), (sum.written += 500);
  writeFileSync(stats + ".new", JSON.stringify(sum));
  renameSync(stats + ".new", stats);
  return { toolCalls, usage: { prompt_tokens: read, completion_tokens: 500, total_tokens: read + 500 } };
}

let all, begunAll = new Promise((done) => (all = done));

async function answer(req) {
  const input = req.messages.filter((m) => m.role === "user").map(text).join("\n");
  const part = /PART (\d+)/.exec(input);
  if (part && together) {
    await begunAll;
    await new Promise((done) => setTimeout(done, 10 * part[1]));
  }
  if (part) return takes(5000, [call("complete_task", { summary: "part " + part[1] + " is done" })]);
  let begun = 0, waited = 0;
  for (const m of req.messages) {
    for (const c of m.tool_calls ?? []) {
      if (c.function.name === "spawn_agent") begun++;
      if (c.function.name === "wait_agent") waited++;
    }
  }
  if (begun === agents) all();
  const read = 6000 + 300 * begun;
  if (begun < agents) {
    const calls = [];
    for (let n = begun; n < Math.min(begun + some, agents); n++) calls.push(call("spawn_agent", { task: "PART " + n, background: true }));
    return takes(read, calls);
  }
  return takes(read, [waited === 0 ? call("wait_agent", { all: true }) : call("complete_task", { summary: "all is done" })]);
}

const mock = new LLMock({ port: 0 });
mock.on({ predicate: () => true }, answer, { latency: 20 });
console.log("listening on " + (await mock.start()));
