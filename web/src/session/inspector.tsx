// The inspector: all that is known of the selected item, from its facts.
import { useEffect, useState } from "preact/hooks";
import { read, Refusal } from "../api";
import type { ContentShown, StoryAnswer } from "../api.gen";
import { moment } from "../prefs";
import { ask, at } from "../route";
import type { Fact, Item, Page } from "../types";
import { Button, bytes, clock, Copy, count, Failed, Icon, length, money, person, save, Skeleton, visible } from "../ui";
import { decidedBy, Knot, knotOf, tells, tone } from "./rope";

/** Opens the inspector on an item. */
export const inspect = (i: Pick<Item, "kind" | "itemId" | "position">) => ask({ item: i.kind + "/" + i.itemId, at: i.position ? String(i.position) : "", of: "" });

const views: [string, string][] = [["", "Summary"], ["input", "Input"], ["output", "Output"], ["decision", "Decision"], ["boundary", "Boundary"], ["cost", "Cost"], ["why", "Why"], ["raw", "Raw"]];

export function pretty(json: string): string {
	try {
		return JSON.stringify(JSON.parse(json), null, 2);
	} catch {
		return json;
	}
}

export function Inspector({ session, item, found, child }: { session: string; item: string; found?: Item; child?: boolean }) {
	const slash = item.indexOf("/"), kind = item.slice(0, slash), id = item.slice(slash + 1).replace(/\/search\/\d+$/, ""), of = at.value.query.get("of") ?? "", position = at.value.query.get("at") ?? "";
	const [facts, set] = useState<Fact[] | null>(null), [error, setError] = useState<Refusal | null>(null), [older, setOlder] = useState("");
	const load = (before = "") => {
		const stop = new AbortController();
		setError(null);
		read<Page>(`/v1/sessions/${session}/events`, { about: id, ...(before ? { before, limit: 200 } : position ? { behind: Math.max(0, Number(position) - 1), limit: 200 } : { last: 200 }) }, stop.signal).then((p) => {
			set(p.events ?? []);
			setOlder(p.moreOlder ? p.older : "");
		}, (e) => e instanceof Refusal && setError(e));
		return () => stop.abort();
	};
	useEffect(() => load(), [item, found?.lastEventId]);
	useEffect(() => set(null), [item]);
	const where = `${location.origin}/sessions/${session}?item=${encodeURIComponent(item)}${position ? "&at=" + position : ""}`;
	const by = kind === "user_message" ? (child ? "nobody" : "person") : facts ? decidedBy(facts) : "nobody", how = found ? tone(found) : "";
	return (
		<aside class="inspector" aria-label="Inspector">
			<header class="bar"><span class={"knot " + how} title={tells(kind, by, found?.status)}><Knot kind={kind} by={by} tone={how} /></span><h2>{visible(found?.name || kind.replace("_", " "))}</h2><span class="grow" /><Button kind="plain" label="Close the inspector" onClick={() => ask({ item: "", of: "", at: "" })}><Icon name="x" /></Button></header>
			<nav class="tabs small" aria-label="What is shown of it">{views.map(([v, label]) => <button type="button" aria-current={of === v ? "page" : undefined} onClick={() => ask({ of: v })}>{label}</button>)}</nav>
			<div class="shown" tabIndex={0} role="region" aria-label={views.find(([v]) => v === of)?.[1]}>
				{error ? <Failed error={error} again={load} /> : !facts ? <Skeleton rows={4} /> : facts.length === 0 ? <><p class="muted">No fact about it is near; it may be further back.</p>{older && <Button onClick={() => void load(older)}>Look further back</Button>}</> : <View of={of} session={session} id={id} facts={facts} found={found} />}
			</div>
			<footer class="actions">
				<Copy text={id} what="the id">id</Copy><Copy text={where} what="the link">link</Copy><Copy text={`belay why ${id}`} what="the command">belay</Copy>
				<Copy text={`curl -H "Authorization: Bearer $TOKEN" '${location.origin}/v1/sessions/${session}/events?about=${id}'`} what="the request">curl</Copy>
			</footer>
		</aside>
	);
}

const last = (facts: Fact[], ...types: string[]) => facts.filter((f) => types.includes(f.type)).at(-1)?.payload;

function View({ of, session, id, facts, found }: { of: string; session: string; id: string; facts: Fact[]; found?: Item }) {
	switch (of) {
		case "input":
			return <Input session={session} facts={facts} found={found} />;
		case "output":
			return <Output session={session} facts={facts} found={found} />;
		case "decision":
			return <Decision facts={facts} kind={found?.kind ?? "tool_call"} />;
		case "boundary":
			return <Boundary facts={facts} />;
		case "cost":
			return <Cost facts={facts} />;
		case "why":
			return <Why session={session} id={id} of={facts[0]} />;
		case "raw":
			return <>{facts.map((f) => <details key={f.eventId}><summary><span class="muted mono">{clock(f.timestamp)}</span> <code>{f.type}</code></summary><pre class="code" tabIndex={0}>{visible(JSON.stringify(f, null, 2))}</pre></details>)}</>;
	}
	const began = facts[0]!, ended = facts.at(-1)!, v = last(facts, "permission.evaluated"), r = last(facts, "action.resolved"), box = last(facts, "sandbox.applied");
	return (
		<dl class="facts">
			<div><dt>Status</dt><dd>{found?.status ?? ended.type}</dd></div>
			<div><dt>Began</dt><dd>{moment(began.timestamp)}</dd></div>
			<div><dt>Took</dt><dd>{length(Date.parse(ended.timestamp) - Date.parse(began.timestamp))}</dd></div>
			{found?.detail && <div><dt>Detail</dt><dd>{visible(found.detail)}</dd></div>}
			{v && <div><dt>Decided</dt><dd>{v.decision} by <code>{visible(v.rule)}</code></dd></div>}
			{r && <div><dt>Answered</dt><dd>{r.decision} by {person(r.by)}{r.scope && r.scope !== "once" ? `, for ${r.scope}` : ""}</dd></div>}
			{box && <div><dt>Boundary</dt><dd>{box.boundary || box.level}</dd></div>}
			{facts.some((f) => f.type === "tool.started") && <div><dt>Attempts</dt><dd>{facts.filter((f) => f.type === "tool.started").length}</dd></div>}
			<div><dt>Facts</dt><dd>{facts.length}</dd></div>
		</dl>
	);
}

function Input({ session, facts, found }: { session: string; facts: Fact[]; found?: Item }) {
	const edit = last(facts, "tool.args"), asked = last(facts, "model.requested"), call = facts.find((f) => f.toolCallId), [told, tell] = useState("");
	// without the conversation beside it, what a call was asked with is in its step
	useEffect(() => {
		if (found || !call?.stepId) return;
		read<Page>(`/v1/sessions/${session}/events`, { about: call.stepId, types: "model.completed", last: 1 }).then((p) => tell(JSON.stringify(p.events?.[0]?.payload.calls?.find((c: any) => c.id === call.toolCallId)?.args ?? "")), () => {});
	}, [call?.eventId, !found]);
	const args = edit?.args ? JSON.stringify(edit.args) : found?.edit?.args ?? found?.args ?? told;
	if (args) return <>{edit && <p class="note">Changed by {person(edit.by)} before it ran.</p>}<pre class="code" tabIndex={0}>{visible(pretty(args))}</pre>{found?.content && found.kind === "tool_call" && !found.text && <Whole session={session} digest={found.content.digest} />}</>;
	if (asked) return <dl class="facts"><div><dt>Model</dt><dd>{asked.provider} {asked.model}</dd></div><div><dt>Facts</dt><dd>{asked.from} to {asked.to}</dd></div><div><dt>Tokens</dt><dd>{count(asked.tokens)} counted</dd></div>{asked.note && <div><dt>Note</dt><dd>{visible(asked.note)}</dd></div>}</dl>;
	return <p class="muted">It has no input of its own.</p>;
}

function Output({ session, facts, found }: { session: string; facts: Fact[]; found?: Item }) {
	const p = last(facts, "tool.result", "tool.failed", "model.completed"), whole = p?.whole ?? p?.output?.ref ?? p?.text?.ref ?? (found?.kind !== "tool_call" ? found?.content : undefined);
	const text = found?.text || p?.output?.text || p?.text?.text || "";
	return <>{p?.problem && <p class="bad">{visible(p.problem.message)}</p>}{whole ? <Whole session={session} digest={whole.digest} size={whole.size} /> : text ? <pre class="code" tabIndex={0}>{visible(text)}</pre> : <p class="muted">It has no output{p ? "" : " yet"}.</p>}</>;
}

/** A content that is kept beside the log, a part at a time; what is looked for in it, the server finds. */
export function Whole({ session, digest, size }: { session: string; digest: string; size?: number }) {
	const [part, set] = useState<ContentShown | null>(null), [text, setText] = useState(""), [find, setFind] = useState(""), [error, setError] = useState<Refusal | null>(null), [from, setFrom] = useState(0);
	const get = (offset: number, find = "") => read<ContentShown>(`/v1/content/${digest}`, { session, offset, ...(find && { find }) });
	const look = async (offset: number, find = "") => {
		try {
			const c = await get(offset, find);
			if (find && c.found === undefined) return set(part && { ...part, found: undefined, digest: "" });
			set(c);
			setText((old) => (offset && !find ? (old + (c.text ?? "")).slice(-4 * 65536) : c.text ?? ""));
			if (!offset || find) setFrom(c.offset);
		} catch (e) {
			if (e instanceof Refusal) setError(e);
		}
	};
	useEffect(() => void look(0), [digest]);
	const keep = async () => {
		const parts: BlobPart[] = [];
		for (let at: number | undefined = 0; at !== undefined; ) {
			const c: ContentShown = await get(at);
			parts.push(c.data ? Uint8Array.from(atob(c.data), (x) => x.charCodeAt(0)) : c.text ?? "");
			at = c.next || undefined;
		}
		save(digest.slice(7, 19) + ".txt", parts);
	};
	if (error) return <Failed error={error} again={() => { setError(null); look(0); }} />;
	if (!part) return <Skeleton rows={3} />;
	return (
		<>
			<form class="say" onSubmit={(e) => { e.preventDefault(); if (find) look(part.found != null ? part.found + 1 : 0, find); }}>
				<input type="search" placeholder={`Find in ${size ? bytes(size) : "all of it"}`} aria-label="Find" value={find} onInput={(e) => { setFind(e.currentTarget.value); set({ ...part, found: undefined, digest }); }} />
				{part.found != null && find && <Button onClick={() => look(part.found! + 1, find)}>Next</Button>}
				<Button kind="plain" label={"Whole output" + (size ? ", " + bytes(size) : "")} onClick={keep}><Icon name="download" /></Button>
			</form>
			{find && !part.digest && <p class="muted" role="status">It isn't behind here.</p>}
			{from > 0 && <div class="actions"><Button onClick={() => look(0)}>From its beginning</Button></div>}
			{part.data ? <p class="muted">It is no text.</p> : <pre class="code" tabIndex={0}><Marked text={text} find={find} /></pre>}
			{part.next ? <div class="actions"><Button onClick={() => look(part.next!)}>More</Button></div> : null}
		</>
	);
}

/** A text in which what was looked for is marked, where it is first. */
export function Marked({ text, find }: { text: string; find: string }) {
	const at = find ? text.toLowerCase().indexOf(find.toLowerCase()) : -1;
	return at < 0 ? <>{visible(text)}</> : <>{visible(text.slice(0, at))}<strong class="hit">{visible(text.slice(at, at + find.length))}</strong>{visible(text.slice(at + find.length))}</>;
}

function Decision({ facts, kind }: { facts: Fact[]; kind: string }) {
	const all = facts.filter((f) => f.type === "permission.evaluated"), answer = last(facts, "action.resolved");
	if (!all.length && !answer) return <p class="muted">No rule decided about it.</p>;
	return (
		<ol class="strand">
			{all.map((f) => {
				const v = f.payload;
				return (
					<li class="item" key={f.eventId}>
						<span class="knot"><Knot kind={kind} by={decidedBy([f])} /></span>
						<div class="body why">
							<p><b class={"verdict " + v.decision}>{v.decision}</b> by <a href={"/policies?view=log&rule=" + encodeURIComponent(v.rule)}><code>{visible(v.rule)}</code></a> <span class="muted">{v.tier} {v.priority || ""} {v.where}</span></p>
							<p>{person(v.reason)}</p>{v.hint && <p class="muted">{visible(v.hint)}</p>}
							{v.commands?.length > 1 && <ul class="points">{v.commands.map((c: any) => <li><code>{visible(c.name)}</code> <span class="muted">{c.class}, {c.decision} by {visible(c.rule)}</span></li>)}</ul>}
							{v.matched?.length > 0 && <><h3>Other rules that spoke</h3><ul class="points">{v.matched.map((m: any) => <li class={m.lost ? "lost-rule" : ""}><code>{visible(m.rule)}</code> <span class="muted">{m.decision}, {m.tier} {m.priority || ""}{m.lost ? ", lost" : ", agreed"}</span></li>)}</ul></>}
							<p class="muted">mode {v.mode}{v.taint?.length ? `, content of ${visible(v.taint.join(", "))} in the conversation` : ""}{v.tags?.length ? `, ${v.tags.join(", ")}` : ""}</p>
						</div>
					</li>
				);
			})}
			{answer && <li class="item"><span class="knot"><Knot kind="question" by={answer.by === "deadline" ? "nobody" : "person"} /></span><div class="body"><p>{answer.decision} by {person(answer.by)}{answer.scope && answer.scope !== "once" ? `, for ${answer.scope}` : ""}{answer.message?.text ? `: ${visible(answer.message.text)}` : ""}</p></div></li>}
		</ol>
	);
}

function Boundary({ facts }: { facts: Fact[] }) {
	const box = last(facts, "sandbox.applied"), wanted = last(facts, "permission.evaluated"), stopped = facts.filter((f) => f.type === "sandbox.violation");
	if (!box && !wanted?.bounds) return <p class="muted">It starts no program, so no boundary is drawn.</p>;
	return (
		<>
			{box && <dl class="facts"><div><dt>Boundary</dt><dd>{box.boundary || "–"}, level {box.level}</dd></div><div><dt>Network</dt><dd>{box.network || "–"}</dd></div><div><dt>Folder</dt><dd>{visible(box.cwd ?? "–")}</dd></div>{Object.entries(box.layers ?? {}).map(([k, v]) => <div><dt>{k}</dt><dd>{String(v)}</dd></div>)}</dl>}
			{stopped.map(({ payload: s }) => <p class="note bad">Stopped: {s.op} {visible(s.target ?? "")} ({s.layer}) {visible(s.reason)}</p>)}
			{wanted?.bounds && <details><summary>As it was decided</summary><pre class="code" tabIndex={0}>{visible(JSON.stringify(wanted.bounds, null, 2))}</pre></details>}
		</>
	);
}

function Cost({ facts }: { facts: Fact[] }) {
	const done = last(facts, "model.completed"), costs = facts.filter((f) => f.type === "cost.recorded").map((f) => f.payload), use = facts.filter((f) => f.type.startsWith("process.") && f.payload.cpuMs !== undefined).map((f) => f.payload), stats = last(facts, "turn.completed", "turn.failed")?.stats;
	if (!done && !costs.length && !use.length && !stats) return <p class="muted">Nothing is recorded of what it cost.</p>;
	const u = done?.usage ?? stats?.usage;
	return (
		<dl class="facts">
			{costs.map((c) => <div><dt>Cost</dt><dd>{c.unpriced ? "unknown" : "$" + (c.amount / 1e6).toFixed(4)} <span class="muted">{c.source}, {c.provider} {c.model}</span></dd></div>)}
			{!costs.length && (done || stats) && <div><dt>Cost</dt><dd>{stats ? money(stats.cost) : "unknown"}</dd></div>}
			{u && <><div><dt>Read</dt><dd>{count(u.input)} tokens, {count(u.cached)} cached</dd></div><div><dt>Written</dt><dd>{count(u.output)} tokens{u.reasoning ? `, ${count(u.reasoning)} of them reasoning` : ""}</dd></div></>}
			{done?.firstMs ? <div><dt>First piece</dt><dd>{done.firstMs} ms</dd></div> : null}
			{use.map((p) => <div><dt>Program</dt><dd>{p.cpuMs} ms of processors, {bytes(p.togetherBytes ?? p.peakBytes)}</dd></div>)}
		</dl>
	);
}

const told: { [prefix: string]: string } = { turn: "turn_end", step: "agent_message", call: "tool_call", act: "question" };

/** Where an id of a session is shown, and why it is so. */
function reason(session: string, id: string): string {
	const kind = told[id.slice(0, id.indexOf("_"))];
	return `/sessions/${session}?` + (kind ? `item=${kind}/${id}&of=why` : `tab=events&about=${id}`);
}

/** Why something happened: a chain of what led to it, each with its fact, and on to why that was so. of is a fact about it. */
export function Why({ session, id, of }: { session?: string; id: string; of?: Fact }) {
	const [a, set] = useState<StoryAnswer | null>(null), [error, setError] = useState<Refusal | null>(null);
	useEffect(() => {
		set(null);
		read<StoryAnswer>(`/v1/why/${id}`, session ? { sessionId: session } : {}).then(set, (e) => e instanceof Refusal && setError(e));
	}, [id]);
	if (error) return <p class="muted">{visible(error.message)}</p>;
	if (!a) return <Skeleton rows={3} />;
	const on = ([["the call", of?.toolCallId], ["the step", of?.stepId], ["the turn", of?.turnId]] as const).filter(([, x]) => x && x !== id);
	return (
		<div class="why">
			<p><b>{visible(a.head)}</b></p>
			{session && on.length > 0 && <p class="on">Why {on.map(([what, x], n) => <>{n > 0 && ", "}<a href={reason(session, x!)}>{what}</a></>)}?</p>}
			{a.says?.length ? <ol class="chain">{a.says.map((s) => <li>{person(s)}</li>)}</ol> : null}
			{a.facts?.length ? (
				<>
					<h3>Facts</h3>
					<ol class="strand">
						{a.facts.map((f) => {
							const [, type = "", rest = ""] = /^\S+\s+#\d+\s+(\S+)\s*([^]*)$/.exec(f.text) ?? ["", "", f.text], k = knotOf(type);
							return (
								<li class="item" key={f.event}>
									<span class="knot" title={tells(k.kind, k.by)}><Knot {...k} /></span>
									<div class="body"><a href={session ? `/sessions/${session}?tab=events&about=${f.event}` : undefined}><code>{type || f.event.slice(0, 12)}</code></a> <span class="muted mono">{clock(f.at)}</span> {person(rest)}</div>
								</li>
							);
						})}
					</ol>
				</>
			) : null}
			{a.next?.length ? (
				<>
					<h3>Further</h3>
					<ul class="points">
						{a.next.map((n) => {
							const next = /^belay why (\S+)$/.exec(n.command)?.[1];
							return <li>{next && session ? <a href={reason(session, next)}>{visible(n.effect)}</a> : visible(n.effect)} <code class="muted">{visible(n.command)}</code></li>;
						})}
					</ul>
				</>
			) : null}
		</div>
	);
}
