// A session as a conversation: what was said and done along the rope, live, and what to say next.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { command, read } from "../api";
import type { RolledBack } from "../api.gen";
import { useLive } from "../load";
import { at, go } from "../route";
import { Said } from "../said";
import type { Item, Session as Row } from "../types";
import { Ago, Button, clock, Dialog, Empty, Failed, Icon, length, person, say, Skeleton, visible, words } from "../ui";
import { shows, Story } from "../window";
import { Question } from "../pages/approvals";
import { Composer } from "./composer";
import { inspect } from "./inspector";
import { decider, Knot, tells, tone, type By } from "./rope";

/** How near to an end of what is loaded more of it is loaded, in pixels. */
const near = 600;

const moved = (type: string) => type.startsWith("action.") || type.startsWith("turn.") || type.startsWith("permission.");

export function Chat({ id, s, driven, running, agents, selected, shown }: { id: string; s: Row; driven: boolean; running: boolean; agents: Set<string>; selected: string; shown: (i?: Item) => void }) {
	const [, paint] = useState(0);
	const story = useRef<Story | null>(null);
	const scroll = useRef<HTMLDivElement>(null);
	const position = Number(at.value.query.get("at")) || 0;
	const atEnd = useRef(!(selected && position));
	const aimed = useRef(""), moving = useRef(false);
	const [back, rewind] = useState<Item | null>(null);
	useEffect(() => {
		const st = (story.current = new Story(id, () => !document.hidden && paint((n) => n + 1)));
		const look = () => paint((n) => n + 1);
		document.addEventListener("visibilitychange", look);
		st.start(selected ? position : 0);
		return () => {
			st.end();
			document.removeEventListener("visibilitychange", look);
		};
	}, [id]);
	const asked = useLive("asked/" + id, (sig) => read("/v1/actions", { sessionId: id }, sig), moved).data?.actions ?? [];
	const st = story.current;
	const found = st?.items.find((i) => i.kind + "/" + i.itemId === selected);
	// what waits to be said is beside the text field until its turn begins
	const waits = new Set(s.threads?.flatMap((t) => t.queue?.map((q) => q.id) ?? []));
	const items = st?.items ?? [], calls = new Map(items.filter((i) => i.kind === "tool_call").map((i) => [i.itemId, i]));
	const drove = (n: number) => !(items[n]!.status === "takeover" || items[n]!.kind === "user_message" && items[n - 1]?.kind === "turn_end");
	useEffect(() => shown(found), [found]);
	// what is new doesn't move what is read
	useLayoutEffect(() => {
		const box = scroll.current;
		if (!box || !st?.loaded) return;
		if (selected && aimed.current !== selected) { // a link leads to its item
			const el = document.getElementById(selected);
			if (el) {
				aimed.current = selected;
				const r = el.getBoundingClientRect(), b = box.getBoundingClientRect();
				if (r.top < b.top || r.bottom > b.bottom) {
					atEnd.current = false;
					box.scrollTop += r.top - b.top - b.height / 3;
				}
			} else if (position && !st.items.some((i) => (i.position ?? 0) === position)) {
				aimed.current = selected;
				atEnd.current = false;
				st.around(position).catch(say);
			}
		}
		if (atEnd.current && !st.detached) {
			box.scrollTop = box.scrollHeight;
			allSeen();
		}
		st.reading = !atEnd.current;
	});
	const allSeen = () => {
		if (!st?.unseen) return;
		st.unseen = 0;
		paint((n) => n + 1);
	};
	const held = async (move: () => Promise<void>, anchor: Element | null) => {
		if (moving.current) return;
		moving.current = true;
		const box = scroll.current!, top = anchor?.getBoundingClientRect().top ?? 0;
		atEnd.current = false;
		try {
			await move();
			await new Promise(requestAnimationFrame);
			if (anchor?.isConnected) box.scrollTop += anchor.getBoundingClientRect().top - top;
		} finally {
			moving.current = false;
		}
	};
	const knots = () => scroll.current!.querySelectorAll(".rope > .item[id]");
	if (st?.gone) return <Empty title="This session was deleted."><a class="button" href="/sessions">All sessions</a></Empty>;
	if (st?.error) return <Failed error={st.error} again={() => { st.error = null; st.start(); }} />;
	return (
		<div class="chat">
			<div class="scroll" ref={scroll} tabIndex={0} aria-label="Conversation" role="region" onScroll={(e) => {
				const b = e.currentTarget, below = b.scrollHeight - b.scrollTop - b.clientHeight;
				atEnd.current = below < 40;
				if (st) st.reading = !atEnd.current;
				if (b.scrollTop < near && st?.moreOlder) held(() => st.earlier(), knots()[0] ?? null).catch(say);
				else if (below < near && st?.detached) held(() => st.later(), [...knots()].at(-1) ?? null).catch(say);
				if (atEnd.current && !st?.detached) allSeen();
			}}>
				{!st?.loaded ? <Skeleton /> : (
					<>
						{st.moreOlder && <Button onClick={() => held(() => st.earlier(), knots()[0] ?? null)}>Earlier</Button>}
						{!st.moreOlder && s.forkedFrom && <p class="muted">A fork of <a href={`/sessions/${s.forkedFrom.session}${s.forkedFrom.turn ? `?item=turn_end/${s.forkedFrom.turn}` : ""}`}>another session</a>, whose history it has up to there.</p>}
						<ol class="rope">
							{items.map((i, n) => <Tied key={i.kind + i.threadId + i.itemId} i={i} by={decider(i, calls, agents)} output={st.outputs.get(i.toolCallId ?? "")} above={drove(n)} below={n + 1 < items.length ? drove(n + 1) : driven} on={i === found} waits={i.kind === "user_message" && waits.has(i.itemId)} rewind={() => rewind(i)} />)}
							{!st.detached && [...st.flows.values()].map((f) => (
								<li class="item agent_message live">
									<span class="knot running"><Knot kind="agent_message" by="nobody" tone="running" /></span>
									<div class="body">
										{f.reasoning && !f.text && <p class="muted plain-text">{visible(f.reasoning.slice(-600))}</p>}
										{f.text && <p class="plain-text">{visible(f.text)}</p>}
									</div>
								</li>
							))}
							{!st.detached && asked.map((a) => (
								<li class={driven ? "item" : "item rested resting"} key={a.actionId}>
									<span class="knot person"><Knot kind="question" by="person" tone="person" /></span>
									<div class="body"><Question id={a.actionId} open={a} inline /></div>
								</li>
							))}
						</ol>
						{st.detached && <Button onClick={() => held(() => st.later(), [...knots()].at(-1) ?? null)}>Later</Button>}
						{items.length === 0 && asked.length === 0 && <Empty title={s.forkedFrom ? "Nothing was said since the fork." : "Nothing was said yet."} />}
					</>
				)}
			</div>
			{st && (st.unseen > 0 || st.detached) && (
				<button type="button" class="pill" onClick={async () => {
					atEnd.current = true;
					if (st.detached) await st.latest().catch(say);
					paint((n) => n + 1);
				}}><Icon name="arrow-down" /> {st.unseen > 0 ? st.unseen + " new" : "To the newest"}</button>
			)}
			<Composer id={id} running={running} waiting={waits.size} />
			{back && <Back session={id} i={back} close={() => rewind(null)} />}
		</div>
	);
}

/** An item on the rope. above and below: whether a process drove before it and after it. */
function Tied({ i, by, output, above, below, on, waits, rewind }: { i: Item; by: By; output?: string; above: boolean; below: boolean; on: boolean; waits: boolean; rewind: () => void }) {
	if (i.kind === "question" && i.state !== "completed") return null; // it is below, with its answers
	const t = tone(i), silent = waits || !shows(i);
	return (
		<li class={["item", i.kind, t === "lost" && "frayed", !above && "rested", !below && "resting", on ? "on" : silent && "silent"].filter(Boolean).join(" ")} id={i.kind + "/" + i.itemId}>
			<button type="button" class={"knot " + t} title={tells(i.kind, by, i.startedAt && clock(i.startedAt))} aria-label={"Inspect " + (i.name || i.kind.replace("_", " "))} onClick={() => inspect(i)}><Knot kind={i.kind} by={by} tone={t} /></button>
			<div class="body"><Body i={i} output={output} rewind={rewind} /></div>
		</li>
	);
}

function Body({ i, output, rewind }: { i: Item; output?: string; rewind: () => void }) {
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
			return <p class={i.status === "completed" ? "muted" : "bad"}>{i.status} {person(i.detail || text)} {i.startedAt && <Ago time={i.startedAt} />} <Button kind="plain" onClick={() => inspect(i)}>Why?</Button> <Button kind="plain" label="Go on from here: fork, or take back" onClick={rewind}><Icon name="git-branch" /></Button></p>;
		case "question":
			return <p class="muted plain-text">{i.status} {i.name && <code>{visible(i.name)}</code>} {person([brief(text.startsWith(i.name + " ") ? text.slice(i.name!.length + 1) : text), i.detail].filter(Boolean).join(" · "))}</p>;
		default:
			return <p class="muted plain-text">{i.name && <code>{visible(i.name)}</code>} {i.status} {person([text, i.detail].filter(Boolean).join(" · "))}</p>;
	}
}

/** Arguments in a few words; what is none stays as it came. */
function brief(args: string): string {
	try {
		return words(JSON.parse(args)) || args;
	} catch {
		return args;
	}
}

function Call({ i, output }: { i: Item; output?: string }) {
	const failed = tone(i) === "failed" || tone(i) === "lost";
	const [open, set] = useState(failed);
	const took = i.startedAt && i.completedAt ? Date.parse(i.completedAt) - Date.parse(i.startedAt) : 0;
	const short = brief(i.edit?.args ?? i.args ?? "");
	return (
		<>
			<button type="button" class="call" aria-expanded={open} onClick={() => set(!open)}>
				<Icon name={open ? "chevron-down" : "chevron-right"} />
				<b>{visible(i.name ?? "")}</b> <code>{visible(short.slice(0, 160))}</code>
				<span class="muted">{i.state === "completed" ? (i.status !== "completed" ? i.status : "") : i.status === "waiting" ? "waits for an answer" : "running"} {took > 1000 ? length(took) : ""}</span>
			</button>
			{failed && i.detail && <p class="bad plain-text">{visible(i.detail)}</p>}
			{output && <pre class="code tail" tabIndex={0}>{visible(output)}</pre>}
			{open && (
				<div class="opened">
					{i.text && <pre class="code" tabIndex={0}>{visible(i.text.slice(0, 20_000))}</pre>}
					<Button kind="plain" onClick={() => inspect(i)}>{i.text ? "Input, decision, cost" : "Input, output, decision"} <Icon name="chevron-right" /></Button>
				</div>
			)}
		</>
	);
}

/** Going on from the end of a turn: in another session, or in this one without what came after. */
function Back({ session, i, close }: { session: string; i: Item; close: () => void }) {
	const [plan, set] = useState<RolledBack | null>(null);
	const paths = (all?: null | { path?: string }[]) => (all ?? []).map((f) => f.path).filter(Boolean).join(", ");
	return (
		<Dialog title="Go on from here" close={close}>
			<div class="form">
				<p>A fork is another session with this history. It has the same folder, and takes nothing back.</p>
				<div class="actions"><Button kind="primary" scope="work" onClick={async () => { const r = await command<{ sessionId: string }>("fork_session", { sessionId: session, turn: i.turnId }); close(); go("/sessions/" + r.sessionId); }}><Icon name="git-branch" /> Fork here</Button></div>
				<p>Taking back ends what came after in this session, and restores files as far as they are kept. What programs did elsewhere stays done.</p>
				{!plan ? <div class="actions"><Button scope="work" onClick={async () => set(await command("rollback_thread", { sessionId: session, turn: i.turnId, dryRun: true }))}>Show what would be taken back</Button></div> : (
					<>
						<dl class="facts">
							<div><dt>Turns</dt><dd>{plan.turns?.length ?? 0}</dd></div><div><dt>Files</dt><dd>{visible(paths(plan.files as { path: string }[])) || "none"}</dd></div>
							{plan.lost?.length ? <div><dt>Not restored</dt><dd>{visible(paths(plan.lost as { path: string }[]))}</dd></div> : null}
							{plan.ran?.length ? <div><dt>Ran, and stays done</dt><dd>{plan.ran.length} calls</dd></div> : null}
						</dl>
						<div class="actions"><Button scope="work" onClick={async () => { await command("rollback_thread", { sessionId: session, turn: i.turnId }); close(); }}>Take it back</Button></div>
					</>
				)}
			</div>
		</Dialog>
	);
}
