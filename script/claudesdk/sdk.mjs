// Talks to the claude of the PATH through the client, and prints what it understood.
// usage: node sdk.mjs MODULE SESSION TOOLS SKIP; an empty word leaves it out
const [module, session, tools, skip] = process.argv.slice(2)
const { claude } = await import(module)
let asked = claude().inDirectory(process.cwd())
if (session) asked = asked.withSessionId(session)
if (tools) asked = asked.allowTools(...tools.split(','))
if (skip) asked = asked.skipPermissions()
const said = asked.query('how is it?')
try {
  const messages = await said.asArray()
  console.log(JSON.stringify({
    text: await said.asText(),
    session: await said.getSessionId(),
    usage: await said.getUsage(),
    succeeded: await said.succeeded(),
    uses: messages.flatMap(m => m.type === 'assistant' ? m.content : []).filter(b => b.type === 'tool_use'),
  }))
} catch (e) {
  console.log(JSON.stringify({ error: e.name, exit: e.exitCode }))
}
