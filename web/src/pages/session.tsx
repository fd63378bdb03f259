// A session as a conversation: what was said and done along the rope, live, and what to say next.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { command, download, read, refused } from "../api";
import type { ActionsShown, SubmitTurn } from "../api.gen";
import { useLive } from "../load";
import { ask, at, go } from "../route";
import { Said } from "../said";
import type { Item, Page, Session as Row, Turn } from "../types";
import { Ago, Button, clock, Copy, count, Empty, Failed, Icon, length, money, say, Skeleton, Status, visible, type IconName } from "../ui";
import { Story } from "../window";
import { Question } from "./approvals";
import { name, standing } from "./sessions";

interface Shell { session: Row; driven: boolean }

export function Session({ id }: { id: string }) {
	const tab = at.value.query.get("tab") ?? "chat";
	const { data, error, again } = useLive("session/" + id, (s) => read<Shell>(`/v1/sessions/${id}`, {}, s));
	if (error) return <section class="page"><Failed error={error} again={again} /><a class="button" href="/sessions">All sessions</a></section>;
	if (!data) return <section class="page"><Skeleton /></section>;
	const s = data.session;
	const turn = s.threads?.find((t) => !t.depth)?.turn;
	const running = turn?.status === "running" || turn?.status === "waiting";
	return (
		<section class="session" aria-label={name(s)}>
			<header>
				<div class="bar">
					<a href="/sessions" aria-label="All sessions"><Icon name="corner-up-left" /></a>
					<h1>{name(s)}</h1>
					<Status {...standing(s)} />
					<span class="muted figures">
						<span>turn {s.counts.turns ?? 0}</span> <span>{count(s.tokens)} tokens</span> <span>{money(s.cost)}</span>
					</span>
					<span class="grow" />
					<label class="muted">mode <select value={s.mode} aria-label="Mode" disabled={!!refused("work")} title={refused("work")} onChange={(e) => command("update_thread", { sessionId: id, settings: { mode: e.currentTarget.value } }).catch(say)}>
						<option value="plan">plan</option><option value="default">ask</option><option value="accept_edits">accept edits</option>
						{s.mode && !["plan", "default", "accept_edits"].includes(s.mode) && <option value={s.mode}>{s.mode}</option>}
					</select></label>
					{running && <Button kind="danger" scope="work" onClick={() => command("interrupt_turn", { sessionId: id })}><Icon name="square" /> Stop</Button>}
				</div>
				<nav class="tabs" aria-label="Views of the session">
					{[["chat", "Chat"], ["changes", `Changes ${s.files?.length || ""}`], ["events", "Events"]].map(([t, label]) => (
						<button type="button" aria-current={tab === t ? "page" : undefined} onClick={() => ask({ tab: t === "chat" ? "" : t! })}>{label}</button>
					))}
					<span class="grow" />
					<Copy text={id} what="the session's id" />
					<Button kind="plain" label="Export as a transcript" onClick={async () => {
						const blob = await download(`/v1/sessions/${id}/export`, { format: "transcript" });
						const a = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: id + ".jsonl" });
						a.click();
						URL.revokeObjectURL(a.href);
					}}><Icon name="download" /></Button>
					<Button kind="plain" label="Fork: begin another session with this history" scope="work" onClick={async () => go("/sessions/" + (await command<{ sessionId: string }>("fork_session", { sessionId: id })).sessionId)}><Icon name="git-branch" /></Button>
				</nav>
			</header>
			{tab === "changes" ? <Changes s={s} /> : tab === "events" ? <Events id={id} /> : <Chat key={id} id={id} s={s} driven={data.driven} running={running} />}
		</section>
	);
}

function Chat({ id, s, driven, running }: { id: string; s: Row; driven: boolean; running: boolean }) {
	const [, paint] = useState(0);
	const story = useRef<Story | null>(null);
	const scroll = useRef<HTMLDivElement>(null);
	const atEnd = useRef(true);
	const [unseen, setUnseen] = useState(0);
	const seen = useRef(0);
	useEffect(() => {
		const st = (story.current = new Story(id, () => !document.hidden && paint((n) => n + 1)));
		const shown = () => paint((n) => n + 1);
		document.addEventListener("visibilitychange", shown);
		st.start();
		return () => {
			st.end();
			document.removeEventListener("visibilitychange", shown);
		};
	}, [id]);
	const asked = useLive("asked/" + id, (sig) => read<ActionsShown>("/v1/actions", { sessionId: id }, sig), (type) => type.startsWith("action.") || type.startsWith("turn.")).data?.actions ?? [];
	const st = story.current;
	const total = st?.items.length ?? 0;
	// what is new doesn't move what is read
	useLayoutEffect(() => {
		const box = scroll.current;
		if (!box) return;
		if (atEnd.current && !st?.detached) {
			box.scrollTop = box.scrollHeight;
			seen.current = total;
			if (unseen) setUnseen(0);
		} else {
			const n = Math.max(0, total - seen.current) + (st?.unseen ?? 0);
			if (n !== unseen) setUnseen(n);
		}
	});
	const earlier = async () => {
		const box = scroll.current!, from = box.scrollHeight - box.scrollTop;
		atEnd.current = false;
		await st!.earlier();
		requestAnimationFrame(() => (box.scrollTop = box.scrollHeight - from));
	};
	if (st?.gone) return <Empty title="This session was deleted."><a class="button" href="/sessions">All sessions</a></Empty>;
	if (st?.error) return <Failed error={st.error} again={() => { st.error = null; st.start(); }} />;
	return (
		<>
			<div class="scroll" ref={scroll} tabIndex={0} aria-label="Conversation" onScroll={(e) => {
				const b = e.currentTarget;
				atEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 40;
				if (atEnd.current && unseen && !st?.detached) {
					seen.current = total;
					setUnseen(0);
				}
			}}>
				{!st?.loaded ? <Skeleton /> : (
					<>
						{st.moreOlder && <Button onClick={earlier}>Earlier</Button>}
						<ol class="rope">
							{st.items.map((i) => <Knot key={i.kind + i.threadId + i.itemId} i={i} output={st.outputs.get(i.toolCallId ?? "")} driven={driven} />)}
							{[...st.flows.values()].map((f) => (
								<li class="item agent_message live">
									<span class="knot running"><Icon name="bot" /></span>
									<div class="body">
										{f.reasoning && !f.text && <p class="muted plain-text">{visible(f.reasoning.slice(-600))}</p>}
										{f.text && <p class="plain-text">{visible(f.text)}</p>}
									</div>
								</li>
							))}
							{asked.map((a) => (
								<li class="item" key={a.actionId}>
									<span class="knot person"><Icon name="circle-alert" /></span>
									<div class="body"><Question id={a.actionId} open={a} inline /></div>
								</li>
							))}
						</ol>
						{total === 0 && asked.length === 0 && <Empty title="Nothing was said yet." />}
					</>
				)}
			</div>
			{(unseen > 0 || st?.detached) && (
				<button type="button" class="pill" onClick={async () => {
					atEnd.current = true;
					if (st!.detached) await st!.latest().catch(say);
					paint((n) => n + 1);
				}}><Icon name="arrow-down" /> {unseen > 0 ? unseen + " new" : "To the newest"}</button>
			)}
			<Composer id={id} running={running} queue={s.threads?.find((t) => !t.depth)?.queue ?? []} />
		</>
	);
}

const kinds: { [kind: string]: IconName } = { user_message: "user", agent_message: "bot", reasoning: "message-square", tool_call: "terminal", question: "circle-question-mark", file_change: "file-diff", artifact: "file-diff", plan: "list", notice: "circle-alert", turn_end: "check" };

function tone(i: Item): string {
	const word = i.status ?? "";
	if (i.kind === "question") return "person";
	if (/lost/.test(word)) return "lost";
	if (/fail|error|denied|timed_out|refused|budget/.test(word)) return "failed";
	if (i.state !== "completed") return "running";
	return i.kind === "turn_end" && word === "completed" ? "ok" : "";
}

function Knot({ i, output, driven }: { i: Item; output?: string; driven: boolean }) {
	if (i.kind === "question" && i.state !== "completed") return null; // it is below, with its answers
	const t = tone(i);
	return (
		<li class={"item " + i.kind + (t === "lost" ? " frayed" : "") + (t === "running" && !driven ? " resting" : "")} id={i.kind + "/" + i.itemId}>
			<span class={"knot " + t} title={i.startedAt ? clock(i.startedAt) : ""}><Icon name={t === "failed" ? "circle-x" : t === "lost" ? "unplug" : kinds[i.kind] ?? "circle-dot"} /></span>
			<div class="body"><Body i={i} output={output} /></div>
		</li>
	);
}

function Body({ i, output }: { i: Item; output?: string }) {
	const text = i.text ?? "";
	switch (i.kind) {
		case "user_message":
			return <p class="plain-text you">{visible(text)}</p>;
		case "agent_message":
			return text ? <Said text={text} /> : <span class="muted">{i.state === "completed" ? i.detail ?? "" : "…"}</span>;
		case "reasoning":
			return <details><summary class="muted">Reasoning</summary><p class="plain-text muted">{visible(text)}</p></details>;
		case "tool_call":
			return <Call i={i} output={output} />;
		case "plan":
			return <ul class="plan">{i.plan?.map((p) => <li class={p.status}><span class="muted">{p.status.replace("_", " ")}</span> {visible(p.text ?? "")}</li>)}</ul>;
		case "turn_end":
			return <p class={i.status === "completed" ? "muted" : "bad"}>{i.status} {visible(i.detail || text)} {i.startedAt && <Ago time={i.startedAt} />} <Why id={i.turnId ?? ""} /></p>;
		default:
			return <p class="muted plain-text">{i.name && <code>{visible(i.name)}</code>} {i.status} {visible([text, i.detail].filter(Boolean).join(" · "))}</p>;
	}
}

function Call({ i, output }: { i: Item; output?: string }) {
	const [open, set] = useState(false);
	const failed = tone(i) === "failed" || tone(i) === "lost";
	const took = i.startedAt && i.completedAt ? Date.parse(i.completedAt) - Date.parse(i.startedAt) : 0;
	let short = i.args ?? "";
	try {
		const a = JSON.parse(short);
		short = a.command ?? a.path ?? a.query ?? a.url ?? a.question ?? a.summary ?? short;
	} catch {
		// it is shown as it came
	}
	return (
		<>
			<button type="button" class="call" aria-expanded={open || failed} onClick={() => set(!open)}>
				<Icon name={open ? "chevron-down" : "chevron-right"} />
				<b>{visible(i.name ?? "")}</b> <code>{visible(String(short).slice(0, 160))}</code>
				<span class="muted">{i.state === "completed" ? (i.status !== "completed" ? i.status : "") : i.status === "waiting" ? "waits for an answer" : "running"} {took > 1000 ? length(took) : ""}</span>
			</button>
			{failed && i.detail && <p class="bad plain-text">{visible(i.detail)}</p>}
			{output && <pre class="code tail" tabIndex={0}>{visible(output)}</pre>}
			{open && (
				<div class="opened">
					{i.args && <pre class="code" tabIndex={0}>{visible(pretty(i.args))}</pre>}
					{i.text && <pre class="code" tabIndex={0}>{visible(i.text.slice(0, 20_000))}</pre>}
					{!failed && i.detail && <p class="muted plain-text">{visible(i.detail)}</p>}
					<p class="muted">{i.startedAt && clock(i.startedAt)} <Copy text={i.toolCallId ?? ""} what="the call's id" /> <Why id={i.toolCallId ?? ""} /></p>
				</div>
			)}
		</>
	);
}

function pretty(json: string): string {
	try {
		return JSON.stringify(JSON.parse(json), null, 2);
	} catch {
		return json;
	}
}

function Why({ id }: { id: string }) {
	const [why, set] = useState<{ head: string; says?: string[] } | null>(null);
	if (!id) return null;
	if (why) return <span class="why"><span>{visible(why.head)}</span>{why.says?.map((s) => <span class="muted">{visible(s)}</span>)}</span>;
	return <Button kind="plain" onClick={async () => set(await read(`/v1/why/${id}`))}>Why?</Button>;
}

function Composer({ id, running, queue }: { id: string; running: boolean; queue: Turn[] }) {
	const kept = "belay.draft." + id;
	const [text, setText] = useState(sessionStorage.getItem(kept) ?? "");
	const [how, setHow] = useState("");
	const write = (v: string) => {
		setText(v);
		v ? sessionStorage.setItem(kept, v) : sessionStorage.removeItem(kept);
	};
	const send = async () => {
		if (!text.trim() || refused("work")) return;
		await command("submit_turn", { sessionId: id, text, ...(running && how && { queue: how }) } satisfies SubmitTurn);
		write("");
	};
	return (
		<form class="composer" onSubmit={(e) => e.preventDefault()}>
			{queue.map((t) => (
				<p class="queued"><Icon name="hourglass" /> <span class="muted">waits</span> <code>{t.id.slice(-8)}</code>
					<Button kind="plain" scope="work" onClick={() => command("promote_queued_turn", { sessionId: id, queuedTurnId: t.id })}>Next</Button>
					<Button kind="plain" scope="work" onClick={() => command("remove_queued_turn", { sessionId: id, queuedTurnId: t.id })}>Drop</Button>
				</p>
			))}
			<div class="say">
				<textarea rows={2} value={text} placeholder={running ? "Say more to what runs…" : "What next?"} aria-label="Message" onInput={(e) => write(e.currentTarget.value)}
					onKeyDown={(e) => {
						if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
							e.preventDefault();
							send().catch(say);
						}
					}} />
				{running && (
					<select value={how} aria-label="What becomes of it" onChange={(e) => setHow(e.currentTarget.value)}>
						<option value="">as set</option><option value="steer">steer</option><option value="enqueue">queue</option><option value="interrupt">interrupt</option>
					</select>
				)}
				<Button kind="primary" scope="work" disabled={text.trim() ? "" : "Write something first."} onClick={send}><Icon name="send" /> Send</Button>
			</div>
		</form>
	);
}

function Changes({ s }: { s: Row }) {
	if (!s.files?.length) return <Empty title="This session changed no file." />;
	return (
		<ul class="rows" aria-label="Changed files">
			{s.files.map((f) => <li class="row"><Icon name="file-diff" /><code class="main">{visible(f.path)}</code><span class="figures muted">{f.op} <Ago time={f.at} /></span></li>)}
		</ul>
	);
}

function Events({ id }: { id: string }) {
	const before = at.value.query.get("before") ?? "";
	const { data, error, again } = useLive("events/" + id + before, (s) => read<Page>(`/v1/sessions/${id}/events`, before ? { before, limit: 100 } : { last: 100 }, s));
	if (error) return <Failed error={error} again={again} />;
	if (!data) return <Skeleton />;
	return (
		<div class="events">
			<div class="actions">
				{data.moreOlder && <Button onClick={() => ask({ before: data.older })}>Earlier</Button>}
				{before && <Button onClick={() => ask({ before: "" })}>Newest</Button>}
			</div>
			{data.events?.map((e) => (
				<details key={e.event_id ?? e.id}>
					<summary><span class="muted mono">{clock(e.timestamp ?? e.time ?? 0)}</span> <code>{e.type}</code></summary>
					<pre class="code" tabIndex={0}>{visible(JSON.stringify(e, null, 2))}</pre>
				</details>
			))}
		</div>
	);
}
