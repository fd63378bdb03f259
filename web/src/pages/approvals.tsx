// Approvals: what waits for an answer, over all sessions, with all that an answer would do.
import { useEffect, useRef, useState } from "preact/hooks";
import { command, newID, read, Refusal, refused } from "../api";
import type { Action, Ancestor, BlockFile, GrantRehearsed, PreviewShown, RespondAction, Told as Result } from "../api.gen";
import { hunks } from "../diff";
import { useLive } from "../load";
import { moment } from "../prefs";
import { ask, before as placeInList } from "../route";
import { Why } from "../session/inspector";
import { speak } from "../spoken";
import type { Item, Page } from "../types";
import { Ago, Button, Copy, counted, Empty, Failed, Icon, length, now, person, say, Skeleton, Status, visible, words } from "../ui";
import { useWatched } from "../watched";

/** How many open questions are listed; who answers sees the next ones. */
const most = 200;

export function Approvals({ id }: { id: string }) {
	const { data, error, again } = useLive("actions", (s) => read("/v1/actions", {}, s), (type) => type.startsWith("action.") || type.startsWith("turn."));
	if (error) return <section class="page"><h1>Approvals</h1><Failed error={error} again={again} /></section>;
	if (!data) return <section class="page"><h1>Approvals</h1><Skeleton /></section>;
	const all = [...(data.actions ?? [])].sort((a, b) => a.until.localeCompare(b.until));
	// a question that comes with an earlier deadline doesn't take the place of the one that is read
	const first = useRef("");
	first.current = id ? "" : first.current || all[0]?.actionId || "";
	const shown = id || first.current;
	return (
		<section class={"split" + (id ? " chosen" : "")} aria-label="Approvals">
			<div class="list">
				<header class="bar"><h1>Approvals</h1><span class="muted">{all.length ? `${all.length} open` : ""}</span></header>
				{all.length === 0 ? <Empty title="Nothing waits for you." /> : (
					<ul class="rows" aria-label={counted("Open questions", Math.min(all.length, most), all.length)}>
						{all.slice(0, most).map((a) => (
							<li class={"row" + (a.actionId === shown ? " on" : "")} key={a.actionId}>
								<span class="knot person"><Icon name={a.kind === "permission" ? "circle-alert" : "circle-question-mark"} /></span>
								<a class="main" href={"/approvals/" + a.actionId} aria-current={a.actionId === id ? "true" : undefined}>
									<span class="name">{a.kind === "permission" ? visible(a.tool ?? "") : visible(a.prompt ?? a.kind)}</span>
									<span class="sub muted">{visible((a.kind === "permission" ? words(a.args) || a.shown || "" : "").slice(0, 200))}</span>
								</a>
								<span class="figures muted"><Ago time={a.asked} /></span>
							</li>
						))}
					</ul>
				)}
				{all.length > most && <p class="muted">and {all.length - most} more, with later deadlines</p>}
				<Decided />
			</div>
			<div class="detail">
				{shown ? <Question key={shown} id={shown} open={all.find((a) => a.actionId === shown)} next={all.find((a) => a.actionId !== shown)?.actionId} /> : null}
			</div>
		</section>
	);
}

/** Questions that were decided, the newest first. */
function Decided() {
	const before = placeInList();
	const { data } = useLive("decided/" + before, (s) => read("/v1/actions", { state: "decided", before, limit: 50 }, s), (type) => type.startsWith("action."));
	if (!data?.decided?.length) return null;
	return (
		<>
			<h2 class="sub-head">Decided</h2>
			<ul class="rows" aria-label="Decided questions">
				{data.decided.map((d) => (
					<li class="row" key={d.actionId}>
						<Status tone={d.decision === "allow" || d.decision === "answer" ? "ok" : d.decision === "deny" ? "failed" : "muted"} word={({ allow: "allowed", deny: "denied", answer: "answered" } as { [d: string]: string })[d.decision] ?? d.decision} />
						<a class="main" href={`/sessions/${d.sessionId}?item=${d.callId ? "tool_call/" + d.callId : "question/" + d.actionId}`}><span class="name">{visible(d.tool || d.prompt || d.kind)}</span><span class="sub muted">by {person(d.by)}{d.scope && d.scope !== "once" ? ", for " + d.scope : ""}{d.message ? ": " + visible(d.message) : ""}</span></a>
						<span class="figures muted"><Ago time={d.decided} /></span>
					</li>
				))}
			</ul>
			<div class="actions">{before && <Button onClick={() => ask({ before: "" })}>Newest</Button>}{data.next ? <Button onClick={() => ask({ before: String(data.next) })}>Earlier</Button> : null}</div>
		</>
	);
}

/** What an answer for more than once would have covered; it is read before it is given. */
function Covers({ covered: { said, why } }: { covered: Covered }) {
	const box = useRef<HTMLDivElement>(null);
	useEffect(() => box.current?.closest("form")?.scrollIntoView({ block: "nearest" }), [said]);
	if (why) return <p class="muted">{visible(why)}</p>;
	if (!said) return <Skeleton rows={1} />;
	return (
		<div class="covers" ref={box}>
			<p>Of the last {said.decisions} calls {said.asked} were asked about; this would have answered <b>{said.covered}</b>.</p>
			{said.calls?.slice(0, 6).map((c) => <code>{visible(c)}</code>)}
		</div>
	);
}

interface Covered { said?: GrantRehearsed; why?: string }

/** Asks what a scope would have covered. Until it is known, the answer has nothing. */
function useCovered(id: string, scope: string, prefix: string): Covered {
	const key = JSON.stringify([id, scope, prefix]), [known, set] = useState<Covered & { key: string }>({ key: "" });
	useEffect(() => {
		if (!scope) return;
		let stop = false;
		const timer = setTimeout(() => command<GrantRehearsed>("rehearse_grant", { actionId: id, scope: scope === "prefix" || scope === "session" ? scope : "exact", ...(scope === "prefix" && { prefix }) }).then((said) => {
			if (stop) return;
			set({ key, said });
			speak(`It would have answered ${said.covered} of ${said.asked} questions.`);
		}, (e) => !stop && set({ key, why: e.message })), 200);
		return () => {
			stop = true;
			clearTimeout(timer);
		};
	}, [key]);
	return known.key === key ? known : {};
}

/** What an answer is about, part by part. */
function parts(p: PreviewShown): Map<string, string> {
	const text = (f: BlockFile) => f.hunks?.flatMap((h) => h.lines ?? []).join("\n") || f.unknown || f.op;
	return new Map([
		["request", p.line || p.text || ""], ["arguments", JSON.stringify(p.args, null, 2) ?? ""], ["folder", p.folder ?? ""], ["network", [p.network, ...(p.hosts ?? [])].join("\n")], ["boundary", p.boundary ?? ""],
		["programs", p.programs?.map((x) => [x.name, x.path, x.digest].join(" ")).join("\n") ?? ""], ["problem", p.problem ?? ""], ["deadline", p.until], ...(p.files ?? []).map((f): [string, string] => ["change of " + f.path, text(f)]),
	]);
}

/** What of a request isn't as it was read. */
function Changed({ was, is, done }: { was: PreviewShown; is: PreviewShown; done: () => void }) {
	useEffect(() => speak("This request changed while you were reading."), [is.version]);
	const a = parts(was), b = parts(is), differ = [...new Set([...a.keys(), ...b.keys()])].filter((name) => (a.get(name) ?? "") !== (b.get(name) ?? ""));
	return (
		<div class="note changed">
			<p>This request changed while you were reading. It is shown as it is now. <Button onClick={done}>I read it</Button></p>
			{differ.map((name) => {
				const h = hunks(a.get(name) ?? "", b.get(name) ?? ""), n = (sign: string) => h.flatMap((x) => x.lines).filter((l) => l[0] === sign).length;
				return <Diff key={name} f={{ path: name, op: "", added: n("+"), removed: n("-"), hunks: h }} />;
			})}
			{!differ.length && <p>What is shown of it is the same: a file or a variable that it stands on isn't.</p>}
		</div>
	);
}

/** Who asks: the agents from the one that a person talks to, to the one that wants this. */
function Asker({ lineage }: { lineage?: null | Ancestor[] }) {
	if (!lineage?.length) return <>the session's main agent</>;
	return (
		<ol class="lineage">{lineage.map((a) => (
			<li>{visible(a.name || a.agent || (a.subagentId ? "an agent" : "the main agent"))}{a.name && a.agent && a.name !== a.agent ? ` (${visible(a.agent)})` : ""}{a.taskId && <span class="muted"> for task <code title={a.taskId}>…{a.taskId.slice(-6)}</code></span>}</li>
		))}</ol>
	);
}

const told: { [kind: string]: string } = { user_message: "you", agent_message: "agent", tool_call: "call" };

/** What was said and done before a question, the newest last. */
function Led({ open }: { open: Action }) {
	const [items, set] = useState<Item[]>([]);
	useEffect(() => {
		const stop = new AbortController();
		read<Page>(`/v1/threads/${open.threadId}/items`, { last: 60 }, stop.signal).then((p) => set(p.items ?? []), () => {}); // the link beside it leads there
		return () => stop.abort();
	}, [open.actionId]);
	const end = items.findIndex((i) => open.callId ? i.toolCallId === open.callId : i.actionId === open.actionId);
	const before = items.slice(0, end < 0 ? items.length : end).filter((i) => told[i.kind] && (i.text || i.name)).slice(-5);
	return (
		<>
			{before.length > 0 && <ol class="led">{before.map((i) => (
				<li><span class="muted">{told[i.kind]}</span> {i.kind === "tool_call" ? <><code>{visible(i.name ?? "")}</code> {visible((i.args ?? "").slice(0, 120))} <span class="muted">{i.status}</span></> : visible((i.text ?? "").slice(0, 240))}</li>
			))}</ol>}
			<a href={`/sessions/${open.sessionId}?item=${open.callId ? "tool_call/" + open.callId : "question/" + open.actionId}`}>{open.callId ? "the call" : "its place"} in its conversation</a>
		</>
	);
}

/** A question and its answers. It is the one that was read: one that changed says so. */
export function Question({ id, open, next, inline }: { id: string; open?: Action; next?: string; inline?: boolean }) {
	const [preview, set] = useState<PreviewShown | null>(null);
	const [error, setError] = useState<Refusal | null>(null);
	const [was, setWas] = useState<PreviewShown | null>(null); // the request that was read, where it is another one now
	const [answered, setAnswered] = useState("");
	const box = useRef<HTMLElement>(null);
	const version = open?.version;
	const look = () => {
		const stop = new AbortController();
		read<PreviewShown>(`/v1/actions/${id}/preview`, {}, stop.signal).then((p) => {
			set((old) => {
				if (old && old.version !== p.version) setWas((read) => read ?? old);
				return p;
			});
			setError(null);
		}, (e) => e instanceof Refusal && e.code !== "unreachable" && setError(e));
		return () => stop.abort();
	};
	useEffect(look, [id, version]);
	useWatched(box, preview && open ? preview.version : "");
	if (answered || error || !open && preview) {
		return (
			<Empty title={answered || (error && error.code !== "already_answered" ? visible(error.message) : "This question is answered, or doesn't wait any more.")}>
				<a class="button" href={next ? "/approvals/" + next : "/approvals"}>{next ? "The next one" : "Open questions"}</a>
			</Empty>
		);
	}
	if (!preview || !open) return <Skeleton rows={4} />;
	return (
		<article ref={box} tabIndex={-1} class={"question" + (inline ? " inline" : "")} aria-label={preview.what || "Question"}>
			{!inline && <a class="back" href="/approvals"><Icon name="corner-up-left" /> All</a>}
			<header>
				<h2>{visible(preview.what || open.prompt || preview.kind)}</h2>
				<p class="muted">
					{!inline && <><a href={"/sessions/" + open.sessionId}>the session</a> · </>}
					{preview.rule && <>asked by rule <code>{visible(preview.rule)}</code>{preview.mode && <>, mode {preview.mode}</>} · </>}
					<Deadline until={preview.until} /> {!inline && <Copy text={id} what="the id" />}
				</p>
			</header>
			{was && <Changed was={was} is={preview} done={() => setWas(null)} />}
			{preview.problem && <p class="note bad">As things are now it would fail: {visible(preview.problem)}</p>}
			{preview.notes?.map((n) => <p class="note">{visible(n)}</p>)}
			{preview.wider && <p class="note">The call ran, and asks for more than its boundary allows.</p>}
			{preview.files?.map((f) => <Diff f={f} />)}
			{preview.line && <pre class="code" tabIndex={0}>{visible(preview.line)}</pre>}
			{(preview.commands?.length ?? 0) > 1 && <ol class="parts">{preview.commands!.map((c) => <li><code>{visible(c)}</code></li>)}</ol>}
			{preview.text && <pre class="code" tabIndex={0}>{visible(preview.text)}</pre>}
			<dl class="facts">
				{!inline && <Fact name="Who asks"><Asker lineage={preview.lineage} /></Fact>}
				{preview.folder && <Fact name="Folder">{visible(preview.folder)}</Fact>}
				{preview.network && <Fact name="Network">{preview.network}{preview.hosts?.length ? ": " + visible(preview.hosts.join(", ")) : ""}</Fact>}
				{preview.boundary && <Fact name="Boundary">{visible(preview.boundary)}</Fact>}
				{open.tags?.length ? <Fact name="Risks">{visible(open.tags.join(", "))}</Fact> : null}
				{open.taint?.length ? <Fact name="From outside">the conversation has content of {visible(open.taint.join(", "))}</Fact> : null}
				{!inline && <Fact name="What led here"><Led open={open} /></Fact>}
				{open.budget && <Fact name="Raise">{visible(JSON.stringify(open.budget.raise))}</Fact>}
			</dl>
			<Answer p={preview} open={open} held={!!was} look={look} answered={(text) => { setAnswered(text); inline ? say(text) : speak(text); }} />
		</article>
	);
}

function Fact({ name, children }: { name: string; children: any }) {
	return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

function Deadline({ until }: { until: string }) {
	const left = Date.parse(until) - now.value;
	return <time dateTime={until} title={moment(until)}>{left > 0 ? `denied by itself in ${length(left)}` : "its time is over"}</time>;
}

export function Diff({ f }: { f: BlockFile }) {
	return (
		<figure class="diff">
			<figcaption><code>{visible(f.path)}</code> <span class="muted">{f.op}</span> <span class="add">+{f.added}</span> <span class="del">−{f.removed}</span></figcaption>
			{f.unknown && <p class="muted">{visible(f.unknown)}</p>}
			<pre tabIndex={0}>
				{f.hunks?.map((h) => [
					<span class="at">line {h.line}{"\n"}</span>,
					h.lines?.map((l) => <span class={l[0] === "+" ? "add" : l[0] === "-" ? "del" : ""}>{visible(l)}{"\n"}</span>),
				])}
			</pre>
		</figure>
	);
}

const answers: { [decision: string]: string } = { allow: "Allowed", deny: "Denied", answer: "Answered" };

/** What was answered, and for how much it counts. */
function given(p: PreviewShown, r: Omit<RespondAction, "actionId">): string {
	const much = r.args ? " with other arguments" : r.clearTaint ? ", and what was read is trusted" : ({ session: " for the session", prefix: ` for what begins with "${r.prefix}"`, count: ` ${r.count} times`, until: ` until ${moment(r.until!)}` } as { [scope: string]: string })[r.scope ?? ""] ?? (r.decision === "allow" && p.kind === "permission" ? " once" : "");
	return visible(`${answers[r.decision]}${much}${r.alike ? ", for all who ask it" : ""}: ${p.what || p.text || p.kind}`);
}

function Answer({ p, open, held, look, answered }: { p: PreviewShown; open: Action; held: boolean; look: () => void; answered: (text: string) => void }) {
	const [more, setMore] = useState<"" | "sure" | "deny" | "edit" | "scope" | "session" | "trust" | "why">("");
	const [message, setMessage] = useState("");
	const [args, setArgs] = useState(JSON.stringify(p.args, null, 2));
	const [scope, setScope] = useState(p.offers?.some((o) => o.scope === "prefix") ? "prefix" : "count"), [prefix, setPrefix] = useState(p.prefix ?? ""), [times, setTimes] = useState("5"), [hours, setHours] = useState("1");
	const others = open.alike?.length ?? 0, [alike, setAlike] = useState(true), [only, setOnly] = useState(false);
	const offer = (scope: string) => p.offers?.find((o) => o.scope === scope), session = offer("session"), words = offer("prefix");
	// what an answer for the session covers is looked up as what it is: of a host, or of exactly this call
	const asked = more === "scope" ? scope : more !== "session" ? "" : session?.covers === "host" ? "prefix" : session?.covers === "call" ? "exact" : "session";
	const covered = useCovered(p.actionId, p.kind !== "permission" || open.budget ? "" : asked, asked === "prefix" ? (more === "scope" ? prefix : session?.prefix ?? "") : "");
	const key = useRef({ text: "", key: "" });
	const needs = open.budget ? "work" : "answer";
	const blocked = held ? "Read the changed request first." : "";
	const unknown = blocked || (open.budget || covered.said || covered.why ? "" : "What it would have covered is being looked up.");
	const send = async (said: Omit<RespondAction, "actionId">) => {
		const body = others && alike && !said.args ? { ...said, alike } : said;
		// the same answer again is the same command
		const text = JSON.stringify(body);
		if (key.current.text !== text) key.current = { text, key: newID() };
		try {
			const r = await command<Result>("respond_action", { actionId: p.actionId, ...body } satisfies RespondAction, key.current.key);
			answered(r.writer ? "Allowed, but " + r.writer.next : given(p, body));
		} catch (e) {
			if (e instanceof Refusal && e.code === "conflict") look();
			throw e;
		}
	};
	const allow = (with_: Partial<RespondAction> = {}) => send({ decision: "allow", version: p.version, ...(with_.scope && only && { only }), ...with_ });
	const same = others > 0 && <label class="check"><input type="checkbox" checked={alike} onChange={(e) => setAlike(e.currentTarget.checked)} /> Also for {others === 1 ? "the other agent that asks" : `the ${others} other agents that ask`} the same</label>;
	const mine = p.lineage?.length ? <label class="check"><input type="checkbox" checked={only} onChange={(e) => setOnly(e.currentTarget.checked)} /> Only for the agent that asks, and those below it</label> : null;
	if (p.kind === "question") {
		return (
			<form class="form answer" onSubmit={(e) => { e.preventDefault(); if (message.trim() && !refused("answer")) send({ decision: "answer", message }).catch(say); }}>
				{same}
				<div class="actions">{p.options?.map((o) => <Button scope="answer" disabled={blocked} onClick={() => send({ decision: "answer", message: o })}>{visible(o)}</Button>)}</div>
				<label>Answer<textarea rows={2} value={message} onInput={(e) => setMessage(e.currentTarget.value)} /></label>
				<div class="actions"><Button kind="primary" scope="answer" disabled={blocked || (message.trim() ? "" : "Write an answer first.")} onClick={() => send({ decision: "answer", message })}>Answer</Button></div>
			</form>
		);
	}
	if (p.kind === "form") return <Form open={open} blocked={blocked} send={send} />;
	const reversible = p.shows === "diff" && !p.confirm, yes = p.kind === "permission" ? "Allow once" : p.kind === "budget" ? "Raise it" : "Go on";
	return (
		<div class="answer">
			{same}
			<div class="actions">
				<Button kind={reversible ? "primary" : undefined} keys="a" scope={needs} disabled={blocked} onClick={() => (p.confirm ? setMore("sure") : allow())}>{yes}{p.confirm && "…"}</Button>
				{session && <Button keys="s" scope="answer" disabled={blocked} onClick={() => setMore(more === "session" ? "" : "session")}>Allow for this session…</Button>}
				{(words || offer("count")) && <Button scope="answer" disabled={blocked} onClick={() => setMore(more === "scope" ? "" : "scope")}>Allow more…</Button>}
				{p.taint?.length && <Button scope="answer" disabled={blocked} onClick={() => setMore(more === "trust" ? "" : "trust")}>Trust what was read…</Button>}
				{p.kind === "permission" && <Button keys="e" scope="answer" disabled={blocked} onClick={() => setMore(more === "edit" ? "" : "edit")}>Change…</Button>}
				<Button keys="d" kind="danger" scope={needs} onClick={() => setMore(more === "deny" ? "" : "deny")}>Deny…</Button>
				<Button keys="w" kind="plain" onClick={() => setMore(more === "why" ? "" : "why")}>Why?</Button>
			</div>
			{more === "sure" && (
				<form class="form" onSubmit={(e) => e.preventDefault()}>
					<p class="note">Look twice: {visible(p.confirm!)}.</p>
					<div class="actions"><Focused><Button scope={needs} disabled={blocked} onClick={() => allow()}>Yes, {yes.toLowerCase()}</Button></Focused></div>
				</form>
			)}
			{more === "deny" && (
				<form class="form" onSubmit={(e) => { e.preventDefault(); if (!refused(needs)) send({ decision: "deny", message }).catch(say); }}>
					<label>What the agent is told <span class="muted">may be empty</span><textarea rows={2} value={message} onInput={(e) => setMessage(e.currentTarget.value)} ref={(x) => x?.focus()} /></label>
					<div class="actions"><Button kind="danger" scope={needs} onClick={() => send({ decision: "deny", ...(message && { message }) })}>Deny it</Button></div>
				</form>
			)}
			{more === "edit" && (
				<form class="form" onSubmit={(e) => e.preventDefault()}>
					<label>The call's arguments <span class="muted">it is judged again with them, and runs once</span><textarea class="mono" rows={8} value={args} spellcheck={false} onInput={(e) => setArgs(e.currentTarget.value)} /></label>
					<div class="actions"><Button kind="primary" scope="answer" disabled={blocked || (json(args) ? "" : "This is no JSON object.")} onClick={() => allow({ args: json(args)! })}>Allow the changed call</Button></div>
				</form>
			)}
			{more === "session" && (
				<form class="form" onSubmit={(e) => e.preventDefault()}>
					<p>{session?.covers === "call" ? "Exactly this call" : <>Each call of <code>{visible(p.tool ?? "")}</code>{session?.covers === "host" && <> to <code>{visible(session.prefix ?? "")}</code></>}</>} in this session runs without a question.{session?.taint?.length ? ` What it brings from outside (${session.taint.map(visible).join(", ")}) is accepted with that.` : ""}</p>
					{!open.budget && <Covers covered={covered} />}
					{mine}
					<div class="actions"><Focused><Button scope="answer" disabled={unknown} onClick={() => allow({ scope: "session" })}>Allow them</Button></Focused></div>
				</form>
			)}
			{more === "trust" && (
				<form class="form" onSubmit={(e) => e.preventDefault()}>
					<p>You looked at what the conversation has from outside ({p.taint?.map(visible).join(", ")}) and trust it: it is no reason to ask any more. This call runs once.</p>
					<div class="actions"><Button scope="answer" disabled={blocked} onClick={() => allow({ clearTaint: true })}>Trust it, and allow the call</Button></div>
				</form>
			)}
			{more === "scope" && (
				<form class="form" onSubmit={(e) => e.preventDefault()}>
					<label>What is allowed
						<select value={scope} onChange={(e) => setScope(e.currentTarget.value)}>
							{words && <option value="prefix">{{ words: "commands that begin so", host: "this host" }[words.covers] ?? "files below a folder"}</option>}
							{offer("count") && <option value="count">this call, so many times</option>}{offer("until") && <option value="until">this call, for some hours</option>}
						</select>
					</label>
					{scope === "prefix" && <label>Beginning<input class="mono" value={prefix} onInput={(e) => setPrefix(e.currentTarget.value)} /></label>}
					{scope === "count" && <label>Calls<input type="number" min="1" value={times} onInput={(e) => setTimes(e.currentTarget.value)} /></label>}
					{scope === "until" && <label>Hours<input type="number" min="0.1" step="0.1" value={hours} onInput={(e) => setHours(e.currentTarget.value)} /></label>}
					<Covers covered={covered} />
					{mine}
					<div class="actions"><Button scope="answer" disabled={unknown} onClick={() => allow(scope === "prefix" ? { scope, prefix } : scope === "count" ? { scope, count: Number(times) } : { scope, until: new Date(Date.now() + Number(hours) * 3600e3).toISOString() })}>Allow</Button></div>
				</form>
			)}
			{more === "why" && <Why session={open.sessionId} id={p.actionId} />}
		</div>
	);
}

interface Field { type?: string | string[]; title?: string; description?: string; default?: unknown; enum?: unknown[]; enumNames?: string[]; oneOf?: { const: unknown; title?: string }[]; minimum?: number; maximum?: number; minLength?: number; maxLength?: number; format?: string; items?: Field }

/** What a server wants to know of a person: its fields, or an address that it wants to be opened. */
function Form({ open, blocked, send }: { open: Action; blocked: string; send: (body: Omit<RespondAction, "actionId">) => Promise<void> }) {
	const asked = open.form!, schema = (asked.schema ?? {}) as { properties?: { [name: string]: Field }; required?: string[] };
	const fields = Object.entries(schema.properties ?? {}), needed = new Set(schema.required ?? []);
	const [values, set] = useState<{ [name: string]: unknown }>(Object.fromEntries(fields.filter(([, f]) => f.default !== undefined).map(([n, f]) => [n, f.default])));
	const given = Object.fromEntries(Object.entries(values).filter(([, v]) => v !== "" && v !== undefined));
	const missing = fields.find(([n]) => needed.has(n) && given[n] === undefined)?.[0];
	return (
		<form class="form answer" onSubmit={(e) => { e.preventDefault(); if (!missing && !blocked && !refused("answer")) send({ decision: "answer", message: JSON.stringify(given) }).catch(say); }}>
			<p class="muted">The MCP server <code>{visible(asked.server)}</code> asks. What you write goes to it.</p>
			{asked.url && <p>It wants you to open <code>{visible(asked.url)}</code></p>}
			{fields.map(([n, f]) => <FieldInput key={n} name={n} f={f} needed={needed.has(n)} value={values[n]} change={(v) => set({ ...values, [n]: v })} />)}
			<div class="actions">
				{asked.url && /^https?:/.test(asked.url) && <a class="button" href={asked.url} target="_blank" rel="noopener noreferrer">Open {visible(new URL(asked.url).host)}</a>}
				<Button kind={asked.url ? undefined : "primary"} scope="answer" disabled={blocked || (missing ? `Say ${missing} first.` : "")} onClick={() => send({ decision: "answer", message: asked.url ? "done" : JSON.stringify(given) })}>{asked.url ? "I did it" : "Answer"}</Button>
				<Button kind="danger" keys="d" scope="answer" disabled={blocked} onClick={() => send({ decision: "deny" })}>Decline</Button>
			</div>
		</form>
	);
}

function FieldInput({ name, f, needed, value, change }: { name: string; f: Field; needed: boolean; value: unknown; change: (v: unknown) => void }) {
	const choices = f.oneOf?.map((o): [unknown, string] => [o.const, o.title ?? String(o.const)]) ?? f.enum?.map((v, i): [unknown, string] => [v, f.enumNames?.[i] ?? String(v)]);
	const label = <>{visible(f.title ?? name)} <span class="muted">{[f.description && visible(f.description), needed ? "" : "may be left out"].filter(Boolean).join("; ")}</span></>;
	const number = f.type === "number" || f.type === "integer", kind = (number ? "number" : ({ email: "email", uri: "url", date: "date" } as { [format: string]: string })[f.format ?? ""] ?? "text") as "number";
	if (f.type === "boolean") return <label class="check"><input type="checkbox" checked={value === true} onChange={(e) => change(e.currentTarget.checked)} /> {label}</label>;
	if (f.type === "array") {
		const of = f.items?.enum ?? f.items?.oneOf?.map((o) => o.const) ?? [], has = Array.isArray(value) ? value : [];
		return <fieldset><legend>{label}</legend>{of.map((v) => <label class="check"><input type="checkbox" checked={has.includes(v)} onChange={(e) => change(e.currentTarget.checked ? [...has, v] : has.filter((x) => x !== v))} /> {visible(String(v))}</label>)}</fieldset>;
	}
	if (choices) return <label>{label}<select value={String(value ?? "")} onChange={(e) => change(choices.find(([v]) => String(v) === e.currentTarget.value)?.[0])}><option value="">–</option>{choices.map(([v, title]) => <option value={String(v)}>{visible(title)}</option>)}</select></label>;
	return <label>{label}<input type={kind} step={f.type === "integer" ? "1" : "any"} min={f.minimum} max={f.maximum} minLength={f.minLength} maxLength={f.maxLength} value={String(value ?? "")} onInput={(e) => change(e.currentTarget.value === "" ? "" : number ? Number(e.currentTarget.value) : e.currentTarget.value)} /></label>;
}

/** Takes the focus where a key brought a person. */
function Focused({ children }: { children: any }) {
	const ref = useRef<HTMLSpanElement>(null);
	useEffect(() => ref.current?.querySelector("button")?.focus(), []);
	return <span ref={ref}>{children}</span>;
}

function json(text: string): { [name: string]: unknown } | null {
	try {
		const v = JSON.parse(text);
		return v && typeof v === "object" && !Array.isArray(v) ? v : null;
	} catch {
		return null;
	}
}
