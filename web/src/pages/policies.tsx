// Rules: what they make of a call, what others would have made of recorded calls, and which would spare questions.
import { useState } from "preact/hooks";
import { command, read } from "../api";
import type { PermissionShown, PolicyReplayed, Reads, RuleListed, RuleSaved, RulesListed, RulesSuggested } from "../api.gen";
import { useLive } from "../load";
import { among, ask, at, before as placeInList, go } from "../route";
import { speak } from "../spoken";
import { Ago, Button, Chips, count, counted, Empty, Failed, Skeleton, Status, visible, type Tone } from "../ui";

const tones: { [decision: string]: Tone } = { allow: "ok", ask: "waiting", deny: "failed" };
const Verdict = ({ word }: { word: string }) => <Status tone={tones[word] ?? "muted"} word={word} />;

const views: [string, string][] = [["", "Rules"], ["log", "Decisions"], ["try", "Judge a call"], ["edit", "Rehearse and save"], ["suggest", "Suggestions"]];

export function Policies() {
	const view = at.value.query.get("view") ?? "";
	return (
		<section class="page" aria-label="Rules">
			<header class="bar"><h1>Rules</h1></header>
			<nav class="tabs" aria-label="Views of the rules">{views.map(([v, label]) => <button type="button" aria-current={view === v ? "page" : undefined} onClick={() => go("/policies" + (v ? "?view=" + v : ""))}>{label}</button>)}</nav>
			{view === "log" ? <Log /> : view === "try" ? <Explain /> : view === "edit" ? <Rehearse /> : view === "suggest" ? <Suggest /> : <Rules />}
		</section>
	);
}

const days: [string, string][] = [["1", "24 hours"], ["7", "7 days"], ["30", "30 days"]];

function Rules() {
	const since = Number(at.value.query.get("days")) || 30;
	const { data, error, again } = useLive("rules/" + since, () => command<RulesListed>("list_rules", { since: new Date(Date.now() - since * 86400e3).toISOString() }), (type) => type.startsWith("policy."));
	const [open, set] = useState("");
	if (error) return <Failed error={error} again={again} />;
	const n = (r: RuleListed) => (r.hits.allow ?? 0) + (r.hits.ask ?? 0) + (r.hits.deny ?? 0);
	const rules = data?.rules ?? [];
	return (
		<section>
			<Chips label="Hits of the last" of={days} chosen={String(since)} choose={(v) => ask({ days: v })} />
			{!data ? <Skeleton /> : [...new Set(rules.map((r) => r.tier))].map((tier) => (
				<div key={tier}>
					<h2>{tier === "default" ? "Built in" : tier}</h2>
					<ul class="rows" aria-label={"Rules of tier " + tier}>
						{rules.filter((r) => r.tier === tier).map((r) => (
							<li class="row" key={r.rule}>
								<Verdict word={r.verdict} />
								<a class="main" href={"#" + r.rule} aria-expanded={open === r.rule} onClick={(e) => { e.preventDefault(); e.stopPropagation(); set(open === r.rule ? "" : r.rule); }}><code class="name">{visible(r.rule)}</code><span class="sub muted wrap">{visible(r.reason ?? "")}</span>
									{open === r.rule && <pre class="code rule-text">{visible(r.text)}{r.where ? "\n# " + visible(r.where) : ""}</pre>}</a>
								<span class="figures muted"><span title="priority" class="wide">{r.priority}</span>
									{n(r) ? <a href={"/policies?view=log&rule=" + encodeURIComponent(r.rule)} title={`${r.hits.allow ?? 0} allowed, ${r.hits.ask ?? 0} asked, ${r.hits.deny ?? 0} denied`}>{count(n(r))} {n(r) === 1 ? "hit" : "hits"}</a> : <span>no hit in the range</span>}
									<Ago time={r.hits.last} /></span>
								{open === r.rule && <Button kind="plain" title="Into the editor, to rehearse it" onClick={() => edit("version: 1\nrules:\n" + r.text)}>Edit</Button>}
							</li>
						))}
					</ul>
				</div>
			))}
		</section>
	);
}

const decisions: Record<NonNullable<Reads["/v1/decisions"]["query"]["decision"]>, string> = { allow: "Allow", ask: "Ask", deny: "Deny" };

function Log() {
	const rule = at.value.query.get("rule") ?? "", decision = among("decision", decisions), before = placeInList();
	const { data, error, again } = useLive(`log/${rule}/${decision}/${before}`, (s) => read("/v1/decisions", { rule, decision, before, limit: 100 }, s), (type) => type.startsWith("permission."));
	if (error) return <Failed error={error} again={again} />;
	return (
		<section>
			<div class="bar"><Chips label="Decision" of={[["", "All"], ...Object.entries(decisions)]} chosen={decision} choose={(v) => ask({ decision: v, before: "" })} />{rule && <button type="button" class="chip" aria-pressed="true" onClick={() => ask({ rule: "", before: "" })}>{visible(rule)} ×</button>}</div>
			{!data ? <Skeleton /> : !data.decisions?.length ? <Empty title="Nothing was decided so." /> : (
				<ul class="rows" aria-label="Decisions">
					{data.decisions.map((d) => (
						<li class="row" key={d.eventId}><Verdict word={d.decision} />
							<a class="main" href={`/sessions/${d.sessionId}?item=tool_call/${d.callId}&of=decision`}><span class="name">{visible(d.tool)} <code>{visible((d.what ?? "").slice(0, 120))}</code></span><span class="sub muted">{visible(d.rule)} · {visible(d.reason ?? "")}</span></a>
							<span class="figures muted"><span class="wide">{d.source}</span><Ago time={d.at} /></span></li>
					))}
				</ul>
			)}
			<div class="actions">{before && <Button onClick={() => ask({ before: "" })}>Newest</Button>}{data?.next ? <Button onClick={() => ask({ before: String(data.next) })}>Earlier</Button> : null}</div>
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
				<Button kind="primary" onClick={async () => {
					const r = await command<PermissionShown>("evaluate_permission", { tool, args: args() });
					set(r);
					speak(`${r.decision} by ${r.rule}.`);
				}}>Judge</Button>
			</form>
			{said && (
				<div class="why">
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

const draft = "belay.rule";

/** Brings a file of rules into the editor, where it is rehearsed before it is saved. */
function edit(rules: string): void {
	sessionStorage.setItem(draft, rules);
	go("/policies?view=edit");
}

function Rehearse() {
	const [rules, setRules] = useState(sessionStorage.getItem(draft) ?? example), [as, setAs] = useState("user"), [add, setAdd] = useState(true), [last, setLast] = useState("200"), [said, set] = useState<PolicyReplayed | null>(null), [saved, setSaved] = useState("");
	const change = (f: () => void) => { f(); set(null); setSaved(""); };
	const body = { rules, ...(last && { last: Number(last) }) };
	return (
		<section>
			<p class="muted">Nothing changes until it is saved: the calls are judged again as <code>belay policy replay{add ? " --add" : ""}{last ? " --last " + last : ""}</code> does it.</p>
			<form class="form" onSubmit={(e) => e.preventDefault()}>
				<textarea class="mono" rows={9} value={rules} spellcheck={false} aria-label="A file of rules" onInput={(e) => change(() => { setRules(e.currentTarget.value); sessionStorage.setItem(draft, e.currentTarget.value); })} />
				<div class="actions">
					<label class="muted"><select aria-label="How the rules count" value={add ? "add" : as} onChange={(e) => change(() => { setAdd(e.currentTarget.value === "add"); if (e.currentTarget.value !== "add") setAs(e.currentTarget.value); })}><option value="add">beside your rules</option><option value="user">in place of the user's</option><option value="workspace">in place of the workspace's</option><option value="admin">in place of the admin's</option></select></label>
					<label class="muted">on the last <input class="short" type="number" min="1" value={last} aria-label="How many of the last calls" onInput={(e) => change(() => setLast(e.currentTarget.value))} /> calls</label>
					<Button kind="primary" onClick={async () => {
						const r = await command<PolicyReplayed>("replay_policy", { ...body, as: add ? "user" : as, add });
						set(r);
						speak(`${r.changed} of ${r.decisions} recorded calls would be decided otherwise.`);
					}}>Rehearse</Button>
					<Button scope="admin" disabled={saved ? "It is saved." : !said ? "Rehearse it first." : !add ? "Only a rule beside yours can be saved here." : ""} onClick={async () => {
						const r = await command<RuleSaved>("save_rule", { ...body, digest: said!.digest, upTo: said!.position });
						setSaved(`${r.rule} is in ${r.path}. It counts from the next turn on.`);
						speak(`${r.rule} is saved.`);
					}}>Save the rule</Button>
				</div>
			</form>
			{saved && <p class="note">{visible(saved)}</p>}
			{said && (
				<div class="why">
					<p><b>{said.changed}</b> of {said.decisions} recorded calls would be decided otherwise; {said.same} as before, {said.otherRule} the same by another rule.</p>
					<ul class="rows" aria-label={counted("Calls that would be decided otherwise", said.changes?.length ?? 0, said.changed)}>
						{said.changes?.map((c) => (
							<li class="row" key={c.eventId}><Verdict word={c.old} /> → <Verdict word={c.new} />
								<a class="main" href={`/sessions/${c.sessionId}?item=tool_call/${c.callId}&of=decision`}><code class="name">{visible(c.what || c.tool)}</code><span class="sub muted">{visible(c.oldRule)} → {visible(c.newRule)}</span></a>
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
	const { data: said, error, again } = useLive("suggest", () => command<RulesSuggested>("suggest_rules", { least: 2, most: 10 }), () => false);
	if (error) return <Failed error={error} again={again} />;
	if (!said) return <Skeleton />;
	return (
		<section>
			<p class="muted">{said.asked} of {said.decisions} recorded calls are asked about. These rules would spare questions.</p>
			{said.rules?.length ? said.rules.map((r) => (
				<div class="why"><pre class="code" tabIndex={0}>{visible(r.rule)}</pre>
					<p class="muted">would have allowed {r.spared} questions in {r.sessions} sessions; speaks of {visible((r.seen ?? []).join(", "))}{r.more ? ` and ${r.more} more` : ""}</p>
					<div class="actions"><Button onClick={() => edit("version: 1\nrules:\n" + r.rule)}>Rehearse it</Button></div></div>
			)) : <Empty title="Nothing is asked often enough for a rule." />}
		</section>
	);
}
