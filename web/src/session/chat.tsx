// A session as a conversation: what was said and done along the rope, live, and what to say next.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { command, newID, read, refused } from "../api";
import type { ActionsShown, RolledBack, SubmitTurn, ThreadShown } from "../api.gen";
import { useLive } from "../load";
import { at, go } from "../route";
import { Said } from "../said";
import type { Item, Session as Row } from "../types";
import { Ago, Button, clock, Dialog, Empty, Failed, Icon, length, person, say, Skeleton, visible, words, type IconName } from "../ui";
import { Story } from "../window";
import { Question } from "../pages/approvals";
import { inspect } from "./inspector";

/** How near to an end of what is loaded more of it is loaded, in pixels. */
const near = 600;

const moved = (type: string) => type.startsWith("action.") || type.startsWith("turn.") || type.startsWith("permission.");

export function Chat({ id, s, driven, running, selected, shown }: { id: string; s: Row; driven: boolean; running: boolean; selected: string; shown: (i?: Item) => void }) {
	const [, paint] = useState(0);
	const story = useRef<Story | null>(null);
	const scroll = useRef<HTMLDivElement>(null);
	const position = Number(at.value.query.get("at")) || 0;
	const atEnd = useRef(!(selected && position));
	const aimed = useRef(""), moving = useRef(false);
	const [unseen, setUnseen] = useState(0);
	const seen = useRef(0);
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
	const asked = useLive("asked/" + id, (sig) => read<ActionsShown>("/v1/actions", { sessionId: id }, sig), moved).data?.actions ?? [];
	const st = story.current;
	const total = st?.items.length ?? 0;
	const found = st?.items.find((i) => i.kind + "/" + i.itemId === selected);
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
			seen.current = total;
			if (unseen) setUnseen(0);
		} else {
			const n = Math.max(0, total - seen.current) + (st.unseen ?? 0);
			if (n !== unseen) setUnseen(n);
		}
	});
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
				if (b.scrollTop < near && st?.moreOlder) held(() => st.earlier(), knots()[0] ?? null).catch(say);
				else if (below < near && st?.detached) held(() => st.later(), [...knots()].at(-1) ?? null).catch(say);
				if (atEnd.current && unseen && !st?.detached) {
					seen.current = total;
					setUnseen(0);
				}
			}}>
				{!st?.loaded ? <Skeleton /> : (
					<>
						{st.moreOlder && <Button onClick={() => held(() => st.earlier(), knots()[0] ?? null)}>Earlier</Button>}
						<ol class="rope">
							{st.items.map((i) => <Knot key={i.kind + i.threadId + i.itemId} i={i} output={st.outputs.get(i.toolCallId ?? "")} driven={driven} on={i === found} rewind={() => rewind(i)} />)}
							{!st.detached && [...st.flows.values()].map((f) => (
								<li class="item agent_message live">
									<span class="knot running"><Icon name="bot" /></span>
									<div class="body">
										{f.reasoning && !f.text && <p class="muted plain-text">{visible(f.reasoning.slice(-600))}</p>}
										{f.text && <p class="plain-text">{visible(f.text)}</p>}
									</div>
								</li>
							))}
							{!st.detached && asked.map((a) => (
								<li class="item" key={a.actionId}>
									<span class="knot person"><Icon name="circle-alert" /></span>
									<div class="body"><Question id={a.actionId} open={a} inline /></div>
								</li>
							))}
						</ol>
						{st.detached && <Button onClick={() => held(() => st.later(), [...knots()].at(-1) ?? null)}>Later</Button>}
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
			<Composer id={id} running={running} waiting={s.threads?.find((t) => !t.depth)?.queue?.length ?? 0} />
			{back && <Back session={id} i={back} close={() => rewind(null)} />}
		</div>
	);
}

const kinds: { [kind: string]: IconName } = { user_message: "user", agent_message: "bot", reasoning: "message-square", tool_call: "terminal", question: "circle-question-mark", file_change: "file-diff", artifact: "file-diff", plan: "list", notice: "circle-alert", turn_end: "check" };

function tone(i: Item): string {
	const word = i.status ?? "";
	if (i.kind === "question") return "person";
	if (/lost/.test(word)) return "lost";
	if (/fail|error|denied|timed_out|refused|budget|^exit /.test(word)) return "failed";
	if (i.state !== "completed") return "running";
	return i.kind === "turn_end" && word === "completed" ? "ok" : "";
}

function Knot({ i, output, driven, on, rewind }: { i: Item; output?: string; driven: boolean; on: boolean; rewind: () => void }) {
	if (i.kind === "question" && i.state !== "completed") return null; // it is below, with its answers
	const t = tone(i), by = i.decided ? "by-" + i.decided : "";
	return (
		<li class={"item " + i.kind + (t === "lost" ? " frayed" : "") + (t === "running" && !driven ? " resting" : "") + (on ? " on" : i.kind === "agent_message" && i.state === "completed" && !t && !i.text && !i.detail ? " silent" : "")} id={i.kind + "/" + i.itemId}>
			<button type="button" class={"knot " + (t || by)} title={(i.startedAt ? clock(i.startedAt) : "") + (by === "by-person" ? ", decided by a person" : by ? ", decided by a rule" : "")} aria-label={"Inspect " + (i.name || i.kind.replace("_", " "))} onClick={() => inspect(i)}><Icon name={t === "failed" ? "circle-x" : t === "lost" ? "unplug" : kinds[i.kind] ?? "circle-dot"} /></button>
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
		default:
			return <p class="muted plain-text">{i.name && <code>{visible(i.name)}</code>} {i.status} {person([text, i.detail].filter(Boolean).join(" · "))}</p>;
	}
}

function Call({ i, output }: { i: Item; output?: string }) {
	const failed = tone(i) === "failed" || tone(i) === "lost";
	const [open, set] = useState(failed);
	const took = i.startedAt && i.completedAt ? Date.parse(i.completedAt) - Date.parse(i.startedAt) : 0;
	let short = i.edit?.args ?? i.args ?? "";
	try {
		short = words(JSON.parse(short)) || short;
	} catch {
		// it is shown as it came
	}
	return (
		<>
			<button type="button" class="call" aria-expanded={open} onClick={() => set(!open)}>
				<Icon name={open ? "chevron-down" : "chevron-right"} />
				<b>{visible(i.name ?? "")}</b> <code>{visible(String(short).slice(0, 160))}</code>
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

function Composer({ id, running, waiting }: { id: string; running: boolean; waiting: number }) {
	const kept = "belay.draft." + id;
	const [text, setText] = useState(sessionStorage.getItem(kept) ?? ""), [how, setHow] = useState("");
	const key = useRef({ text: "", key: "" });
	const queued = useLive(`queue/${id}/${waiting > 0}`, () => (waiting ? command<ThreadShown>("get_thread_read", { sessionId: id }) : Promise.resolve(null)), (type) => type.startsWith("queue.") || type.startsWith("turn.")).data?.queuedTurns ?? [];
	const field = useRef<HTMLTextAreaElement>(null), what = (t: { text?: string; turnId: string }) => visible((t.text ?? "").slice(0, 200)) || t.turnId.slice(-8);
	const write = (v: string) => {
		setText(v);
		v ? sessionStorage.setItem(kept, v) : sessionStorage.removeItem(kept);
	};
	const send = async () => {
		if (!text.trim() || refused("work")) return;
		if (key.current.text !== text) key.current = { text, key: newID() }; // sent again it is the same
		await command("submit_turn", { sessionId: id, text, ...(running && how && { queue: how }) } satisfies SubmitTurn, key.current.key);
		key.current = { text: "", key: "" };
		write("");
	};
	return (
		<form class="composer" onSubmit={(e) => e.preventDefault()}>
			{queued.map((t, n) => (
				<p class="queued" key={t.turnId}><Icon name="hourglass" /> <span class="muted">{n + 1}.</span> <span class="what">{what(t)}</span>
					<Button kind="plain" scope="work" label={"Edit: " + what(t)} title="Take it out and write it anew" onClick={async () => { await command("remove_queued_turn", { sessionId: id, queuedTurnId: t.turnId }); write(t.text ?? ""); field.current?.focus(); }}><Icon name="pencil" /></Button>
					{n > 0 && <Button kind="plain" scope="work" label={"Next: " + what(t)} onClick={() => command("promote_queued_turn", { sessionId: id, queuedTurnId: t.turnId })}>Next</Button>}
					<Button kind="plain" scope="work" label={"Drop: " + what(t)} onClick={() => command("remove_queued_turn", { sessionId: id, queuedTurnId: t.turnId })}>Drop</Button>
				</p>
			))}
			<div class="say">
				<textarea ref={field} rows={2} value={text} placeholder={running ? "Say more to what runs…" : "What next?"} aria-label="Message" onInput={(e) => write(e.currentTarget.value)}
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
