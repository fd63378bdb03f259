// Approvals: what waits for an answer, over all sessions, with all that an answer would do.
import { useEffect, useRef, useState } from "preact/hooks";
import { command, may, newID, read, Refusal } from "../api";
import type { Action, ActionsShown, BlockFile, PreviewShown, RespondAction, Told as Result } from "../api.gen";
import { useLive } from "../load";
import { at, go } from "../route";
import { Ago, Button, Copy, Empty, Failed, Icon, length, now, say, Skeleton, visible } from "../ui";

export function Approvals({ id }: { id: string }) {
	const { data, error, again } = useLive("actions", (s) => read<ActionsShown>("/v1/actions", {}, s), (type) => type.startsWith("action.") || type.startsWith("turn."));
	if (error) return <section class="page"><h1>Approvals</h1><Failed error={error} again={again} /></section>;
	if (!data) return <section class="page"><h1>Approvals</h1><Skeleton /></section>;
	const all = [...(data.actions ?? [])].sort((a, b) => a.until.localeCompare(b.until));
	const shown = id || all[0]?.actionId;
	return (
		<section class={"split" + (id ? " chosen" : "")} aria-label="Approvals">
			<div class="list">
				<header class="bar"><h1>Approvals</h1><span class="muted">{all.length ? `${all.length} open` : ""}</span></header>
				{all.length === 0 ? <Empty title="Nothing waits for you." /> : (
					<ul class="rows" aria-label="Open questions">
						{all.map((a) => (
							<li class={"row" + (a.actionId === shown ? " on" : "")} key={a.actionId}>
								<span class="knot person"><Icon name={a.kind === "permission" ? "circle-alert" : "circle-question-mark"} /></span>
								<a class="main" href={"/approvals/" + a.actionId} aria-current={a.actionId === id ? "true" : undefined}>
									<span class="name">{a.kind === "permission" ? visible(a.tool ?? "") : visible(a.prompt ?? a.kind)}</span>
									<span class="sub muted">{visible((a.shown ?? a.prompt ?? "").slice(0, 200))}</span>
								</a>
								<span class="figures muted"><Ago time={a.asked} /></span>
							</li>
						))}
					</ul>
				)}
			</div>
			<div class="detail">
				{shown ? <Question key={shown} id={shown} open={all.find((a) => a.actionId === shown)} next={all.find((a) => a.actionId !== shown)?.actionId} /> : null}
			</div>
		</section>
	);
}

/** A question and its answers. It is the one that was read: one that changed says so. */
export function Question({ id, open, next, inline }: { id: string; open?: Action; next?: string; inline?: boolean }) {
	const [preview, set] = useState<PreviewShown | null>(null);
	const [error, setError] = useState<Refusal | null>(null);
	const [changed, setChanged] = useState(false);
	const version = open?.version;
	const look = () => {
		const stop = new AbortController();
		read<PreviewShown>(`/v1/actions/${id}/preview`, {}, stop.signal).then((p) => {
			set((old) => {
				if (old && old.version !== p.version) setChanged(true);
				return p;
			});
			setError(null);
		}, (e) => e instanceof Refusal && e.code !== "unreachable" && setError(e));
		return () => stop.abort();
	};
	useEffect(look, [id, version]);
	if (error || !open && preview) {
		return (
			<Empty title={error && error.code !== "already_answered" ? visible(error.message) : "This question is answered, or doesn't wait any more."}>
				<a class="button" href="/approvals">{next ? "The next one" : "Open questions"}</a>
			</Empty>
		);
	}
	if (!preview || !open) return <Skeleton rows={4} />;
	return (
		<article class={"question" + (inline ? " inline" : "")} aria-label={preview.what || "Question"}>
			{!inline && <a class="back" href="/approvals"><Icon name="corner-up-left" /> All</a>}
			<header>
				<h2>{visible(preview.what || open.prompt || preview.kind)}</h2>
				<p class="muted">
					{!inline && <><a href={"/sessions/" + open.sessionId}>the session</a> · </>}
					{preview.rule && <>asked by rule <code>{visible(preview.rule)}</code>{preview.mode && <>, mode {preview.mode}</>} · </>}
					<Deadline until={preview.until} /> {!inline && <Copy text={id} what="the id" />}
				</p>
			</header>
			{changed && <p class="note changed" role="alert">This request changed while you were reading. It is shown as it is now. <Button onClick={() => setChanged(false)}>I read it</Button></p>}
			{preview.problem && <p class="note bad">As things are now it would fail: {visible(preview.problem)}</p>}
			{preview.notes?.map((n) => <p class="note">{visible(n)}</p>)}
			{preview.wider && <p class="note">The call ran, and asks for more than its boundary allows.</p>}
			{preview.files?.map((f) => <Diff f={f} />)}
			{preview.line && <pre class="code" tabIndex={0}>{visible(preview.line)}</pre>}
			{(preview.commands?.length ?? 0) > 1 && <ol class="parts">{preview.commands!.map((c) => <li><code>{visible(c)}</code></li>)}</ol>}
			{preview.text && <pre class="code" tabIndex={0}>{visible(preview.text)}</pre>}
			<dl class="facts">
				{preview.folder && <Fact name="Folder">{visible(preview.folder)}</Fact>}
				{preview.network && <Fact name="Network">{preview.network}{preview.hosts?.length ? ": " + visible(preview.hosts.join(", ")) : ""}</Fact>}
				{preview.boundary && <Fact name="Boundary">{visible(preview.boundary)}</Fact>}
				{open.tags?.length ? <Fact name="Risks">{visible(open.tags.join(", "))}</Fact> : null}
				{open.taint?.length ? <Fact name="From outside">{visible(open.taint.join(", "))}</Fact> : null}
				{open.budget && <Fact name="Raise">{visible(JSON.stringify(open.budget.raise))}</Fact>}
			</dl>
			<Answer p={preview} open={open} held={changed} next={next} inline={inline} look={look} />
		</article>
	);
}

function Fact({ name, children }: { name: string; children: any }) {
	return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

function Deadline({ until }: { until: string }) {
	const left = Date.parse(until) - now.value;
	return <time dateTime={until} title={new Date(until).toLocaleString()}>{left > 0 ? `denied by itself in ${length(left)}` : "its time is over"}</time>;
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

function Answer({ p, open, held, next, inline, look }: { p: PreviewShown; open: Action; held: boolean; next?: string; inline?: boolean; look: () => void }) {
	const [more, setMore] = useState<"" | "deny" | "edit" | "scope" | "why">("");
	const [message, setMessage] = useState("");
	const [args, setArgs] = useState(JSON.stringify(p.args, null, 2));
	const [scope, setScope] = useState("prefix"), [prefix, setPrefix] = useState(p.prefix ?? ""), [times, setTimes] = useState("5"), [hours, setHours] = useState("1");
	const [why, setWhy] = useState<{ head: string; says?: string[] } | null>(null);
	const key = useRef({ text: "", key: "" });
	const needs = open.budget ? "work" : "answer";
	const blocked = held ? "Read the changed request first." : may(needs) ? "" : open.budget ? "A question about a budget is an operator's to answer." : "Answering takes a token of role approver or owner.";
	const send = async (body: Omit<RespondAction, "actionId">) => {
		// the same answer again is the same command
		const text = JSON.stringify(body);
		if (key.current.text !== text) key.current = { text, key: newID() };
		try {
			const r = await command<Result>("respond_action", { actionId: p.actionId, ...body } satisfies RespondAction, key.current.key);
			if (r.writer) say("Allowed, but " + r.writer.next);
			if (!inline && at.value.path.startsWith("/approvals/")) go(next ? "/approvals/" + next : "/approvals");
		} catch (e) {
			if (e instanceof Refusal && e.code === "conflict") look();
			throw e;
		}
	};
	const allow = (with_: Partial<RespondAction> = {}) => send({ decision: "allow", version: p.version, ...with_ });
	if (p.kind === "question") {
		return (
			<form class="form answer" onSubmit={(e) => { e.preventDefault(); if (message.trim()) send({ decision: "answer", message }).catch(say); }}>
				<div class="actions">{p.options?.map((o) => <Button scope="answer" disabled={blocked} onClick={() => send({ decision: "answer", message: o })}>{visible(o)}</Button>)}</div>
				<label>Answer<textarea rows={2} value={message} onInput={(e) => setMessage(e.currentTarget.value)} /></label>
				<div class="actions"><Button kind="primary" scope="answer" disabled={blocked || (message.trim() ? "" : "Write an answer first.")} onClick={() => send({ decision: "answer", message })}>Answer</Button></div>
			</form>
		);
	}
	const reversible = p.shows === "diff";
	return (
		<div class="answer">
			<div class="actions">
				<Button kind={reversible ? "primary" : undefined} keys="a" scope={needs} disabled={blocked} onClick={() => allow()}>{p.kind === "permission" ? "Allow once" : p.kind === "budget" ? "Raise it" : "Go on"}</Button>
				{p.kind === "permission" && <Button keys="s" scope="answer" disabled={blocked} onClick={() => allow({ scope: "session" })}>Allow for this session</Button>}
				{p.kind === "permission" && <Button scope="answer" disabled={blocked} onClick={() => setMore(more === "scope" ? "" : "scope")}>Allow more…</Button>}
				{p.kind === "permission" && <Button keys="e" scope="answer" disabled={blocked} onClick={() => setMore(more === "edit" ? "" : "edit")}>Change…</Button>}
				<Button keys="d" kind="danger" scope={needs} disabled={blocked && may(needs) ? "" : blocked} onClick={() => setMore(more === "deny" ? "" : "deny")}>Deny…</Button>
				<Button keys="w" kind="plain" onClick={async () => {
					setMore("why");
					setWhy(await read(`/v1/why/${p.actionId}`));
				}}>Why?</Button>
			</div>
			{more === "deny" && (
				<form class="form" onSubmit={(e) => { e.preventDefault(); send({ decision: "deny", message }).catch(say); }}>
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
			{more === "scope" && (
				<form class="form" onSubmit={(e) => e.preventDefault()}>
					<label>What is allowed
						<select value={scope} onChange={(e) => setScope(e.currentTarget.value)}>
							<option value="prefix">{p.shows === "command" ? "commands that begin so" : "files below a folder"}</option>
							<option value="count">so many calls of {p.tool}</option><option value="until">calls of {p.tool} for some hours</option>
						</select>
					</label>
					{scope === "prefix" && <label>Beginning<input class="mono" value={prefix} onInput={(e) => setPrefix(e.currentTarget.value)} /></label>}
					{scope === "count" && <label>Calls<input type="number" min="1" value={times} onInput={(e) => setTimes(e.currentTarget.value)} /></label>}
					{scope === "until" && <label>Hours<input type="number" min="0.1" step="0.1" value={hours} onInput={(e) => setHours(e.currentTarget.value)} /></label>}
					<div class="actions"><Button scope="answer" disabled={blocked} onClick={() => allow(scope === "prefix" ? { scope, prefix } : scope === "count" ? { scope, count: Number(times) } : { scope, until: new Date(Date.now() + Number(hours) * 3600e3).toISOString() })}>Allow</Button></div>
				</form>
			)}
			{more === "why" && (why ? <div class="why"><p>{visible(why.head)}</p>{why.says?.map((s) => <p class="muted">{visible(s)}</p>)}</div> : <Skeleton rows={2} />)}
		</div>
	);
}

function json(text: string): { [name: string]: unknown } | null {
	try {
		const v = JSON.parse(text);
		return v && typeof v === "object" && !Array.isArray(v) ? v : null;
	} catch {
		return null;
	}
}
