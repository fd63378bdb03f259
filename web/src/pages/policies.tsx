// Rules: what they make of a call, what others would have made of recorded calls, and which would spare questions.
import { useState } from "preact/hooks";
import { command } from "../api";
import type { PermissionShown, PolicyReplayed, RulesSuggested } from "../api.gen";
import { Button, Empty, Status, visible, type Tone } from "../ui";

const tones: { [decision: string]: Tone } = { allow: "ok", ask: "waiting", deny: "failed" };
const Verdict = ({ word }: { word: string }) => <Status tone={tones[word] ?? "muted"} word={word} />;

export function Policies() {
	return (
		<section class="page" aria-label="Rules">
			<header class="bar"><h1>Rules</h1></header>
			<Explain />
			<Rehearse />
			<Suggest />
		</section>
	);
}

function Explain() {
	const [line, setLine] = useState("git push origin main"), [tool, setTool] = useState("exec"), [said, set] = useState<PermissionShown | null>(null);
	const args = (): { [name: string]: unknown } => {
		try {
			return JSON.parse(line);
		} catch {
			return tool === "exec" ? { command: line } : { path: line };
		}
	};
	return (
		<section>
			<h2>What would become of a call</h2>
			<form class="say" onSubmit={(e) => e.preventDefault()}>
				<input value={tool} aria-label="Tool" size={8} onInput={(e) => setTool(e.currentTarget.value)} />
				<input class="mono grow" value={line} aria-label="Command, path or arguments as JSON" onInput={(e) => setLine(e.currentTarget.value)} />
				<Button kind="primary" onClick={async () => set(await command("evaluate_permission", { tool, args: args() }))}>Judge</Button>
			</form>
			{said && (
				<div class="why" role="status">
					<p><Verdict word={said.decision} /> by <code>{visible(said.rule)}</code> <span class="muted">{said.where || "built in"}, mode {said.mode}</span></p>
					<p>{visible(said.reason)} {said.hint && <span class="muted">{visible(said.hint)}</span>}</p>
					<ul class="rows" aria-label="Rules that spoke">
						{said.matched?.map((m) => <li class="row"><Verdict word={m.decision} /><span class="main"><code class="name">{visible(m.rule)}</code><span class="sub muted">{visible(m.why)}</span></span><span class="figures muted">{m.tier} {m.priority}</span></li>)}
					</ul>
				</div>
			)}
		</section>
	);
}

const example = `version: 1
rules:
  - id: no-push
    verdict: deny
    reason: releases go another way
    when: {tool: exec, command: {program: git, prefix: push}}
    examples: [git push origin main]
`;

function Rehearse() {
	const [rules, setRules] = useState(example), [as, setAs] = useState("user"), [said, set] = useState<PolicyReplayed | null>(null);
	return (
		<section>
			<h2>Rehearse rules on recorded calls</h2>
			<p class="muted">Nothing changes: the rules stand in for those of a tier, as <code>belay policy replay</code> does it.</p>
			<form class="form" onSubmit={(e) => e.preventDefault()}>
				<textarea class="mono" rows={9} value={rules} spellcheck={false} aria-label="A file of rules" onInput={(e) => { setRules(e.currentTarget.value); set(null); }} />
				<div class="actions">
					<label class="muted">in place of those of <select value={as} onChange={(e) => { setAs(e.currentTarget.value); set(null); }}><option value="user">the user</option><option value="workspace">the workspace</option><option value="admin">the admin</option></select></label>
					<Button kind="primary" onClick={async () => set(await command("replay_policy", { rules, as }))}>Rehearse</Button>
				</div>
			</form>
			{said && (
				<div class="why" role="status">
					<p><b>{said.changed}</b> of {said.decisions} recorded calls would be decided otherwise; {said.same} as before, {said.otherRule} the same by another rule.</p>
					<ul class="rows" aria-label="Calls that would be decided otherwise">
						{said.changes?.map((c) => (
							<li class="row" key={c.eventId}><Verdict word={c.old} /> → <Verdict word={c.new} />
								<a class="main" href={"/sessions/" + c.sessionId}><code class="name">{visible(c.what)}</code><span class="sub muted">{visible(c.oldRule)} → {visible(c.newRule)}</span></a>
							</li>
						))}
					</ul>
					{said.more ? <p class="muted">and {said.more} more</p> : null}
				</div>
			)}
		</section>
	);
}

function Suggest() {
	const [said, set] = useState<RulesSuggested | null>(null);
	return (
		<section>
			<h2>Rules that would spare questions</h2>
			<div class="actions"><Button onClick={async () => set(await command("suggest_rules", { least: 2, most: 10 }))}>Suggest</Button></div>
			{said && (said.rules?.length ? said.rules.map((r) => (
				<div class="why"><pre class="code" tabIndex={0}>{visible(r.rule)}</pre><p class="muted">spares {r.spared} questions in {r.sessions} sessions; speaks of {visible((r.seen ?? []).join(", "))}{r.more ? ` and ${r.more} more` : ""}</p></div>
			)) : <Empty title={`Nothing was asked often enough: ${said.asked} of ${said.decisions} calls were asked about.`} />)}
		</section>
	);
}
