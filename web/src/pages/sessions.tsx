// Sessions: search, filters, and what can be done with one.
import { useState } from "preact/hooks";
import { command, read, Refusal } from "../api";
import type { LabelSession, SubmitTurn, Told as Result } from "../api.gen";
import { useLive } from "../load";
import { ask, at, go } from "../route";
import { Session as One } from "./session";
import type { Found, Session, Sessions as All } from "../types";
import { Ago, Button, count, Dialog, Empty, Failed, Icon, money, say, Skeleton, Status, visible, type Tone } from "../ui";

/** What a session is doing, in the words of the command line. */
export function standing(s: Session): { tone: Tone; word: string } {
	if (s.actions?.length) return { tone: "waiting", word: s.actions.length > 1 ? `waits (${s.actions.length})` : "waits" };
	const turns = (s.threads ?? []).map((t) => t.turn).filter((t) => t !== undefined);
	if (turns.some((t) => t.status === "running")) return { tone: "running", word: "running" };
	if (turns.some((t) => t.status !== "ended")) return { tone: "muted", word: turns.find((t) => t.status !== "ended")!.status.replace("_", " ") };
	const last = turns.at(-1);
	if (!last?.outcome) return { tone: "muted", word: "new" };
	return { tone: last.outcome === "completed" ? "ok" : last.outcome === "lost" ? "lost" : last.outcome === "cancelled" ? "muted" : "failed", word: last.outcome };
}

export const name = (s: Session) => visible(s.title || s.id);

export function Sessions({ id }: { id: string }) {
	return id ? <One id={id} /> : <List />;
}

function List() {
	const q = at.value.query;
	const status = q.get("status") ?? "", archived = q.get("archived") === "true", words = q.get("q") ?? "", tag = q.get("tag") ?? "";
	const limit = Number(q.get("limit")) || 100;
	const key = JSON.stringify([status, archived, words, tag, limit]);
	const { data, error, again } = useLive(key, async (signal) => {
		if (!words) return read<All>("/v1/sessions", { status, tag, archived, limit }, signal);
		const found = await read<Found>("/v1/search", { q: words, limit: 50 }, signal);
		return { sessions: (found.hits ?? []).map((h) => ({ id: h.sessionId, title: h.title, updated: h.updated, excerpt: h.excerpt ?? "", counts: { events: 0 }, position: 0 })), more: false, position: 0 };
	});
	const [made, make] = useState(false);
	const [chosen, choose] = useState<Session | null>(null);
	return (
		<section class="page" aria-label="Sessions">
			<header class="bar">
				<h1>Sessions</h1>
				<label class="search">
					<Icon name="search" />
					<input type="search" id="search" placeholder="Words in sessions" aria-label="Search sessions" value={words} onChange={(e) => ask({ q: e.currentTarget.value.trim() })} />
				</label>
				<Button kind="primary" scope="work" onClick={() => make(true)}>
					<Icon name="plus" /> New
				</Button>
			</header>
			{!words && (
				<div class="chips" role="group" aria-label="Filters">
					{[["", "All"], ["running", "Running"], ["waiting", "Waiting"], ["queued", "Queued"], ["ended", "Ended"]].map(([v, label]) => (
						<button type="button" class="chip" aria-pressed={status === v} onClick={() => ask({ status: v! })}>{label}</button>
					))}
					<button type="button" class="chip" aria-pressed={archived} onClick={() => ask({ archived: archived ? "" : "true" })}>Archived</button>
					{tag && <button type="button" class="chip" aria-pressed="true" onClick={() => ask({ tag: "" })}>tag {tag} ×</button>}
				</div>
			)}
			{error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : data.sessions.length === 0 ? (
				words ? <Empty title={`No session has all of these words: ${words}.`} /> : (
					<Empty title="No sessions here.">
						<p class="muted">Begin one with New, or at a terminal with <code>belay run "…"</code>.</p>
					</Empty>
				)
			) : (
				<ul class="rows" aria-label="Sessions">
					{data.sessions.map((s) => <Row key={s.id} s={s} manage={() => choose(s)} />)}
				</ul>
			)}
			{data?.more && <Button onClick={() => ask({ limit: String(limit + 200) })}>Show more</Button>}
			{made && <Begin close={() => make(false)} />}
			{chosen && <Manage s={chosen} close={() => choose(null)} done={again} />}
		</section>
	);
}

function Row({ s, manage }: { s: Session & { excerpt?: string }; manage: () => void }) {
	const is = standing(s);
	const turn = s.threads?.at(-1)?.turn;
	return (
		<li class="row">
			{s.excerpt === undefined ? <Status {...is} /> : <Icon name="search" />}
			<a class="main" href={"/sessions/" + s.id}>
				{s.forkedFrom && <Icon name="git-branch" />}
				<span class="name">{name(s)}</span>
				<span class="sub muted">{visible(s.excerpt || turn?.summary || s.actions?.[0]?.prompt || s.workspace || "")}</span>
			</a>
			<span class="figures muted">
				{s.tags?.map((t) => <a class="tag" href={"/sessions?tag=" + encodeURIComponent(t)}>{visible(t)}</a>)}
				{s.counts.turns ? <span class="wide">turn {s.counts.turns}</span> : null}
				{s.tokens ? <span class="wide">{count(s.tokens)} tokens</span> : null}
				{s.cost && <span class="wide">{money(s.cost)}</span>}
				<Ago time={s.updated} />
			</span>
			{s.excerpt === undefined && <Button kind="plain" label={"Change " + name(s)} onClick={manage}><Icon name="menu" /></Button>}
		</li>
	);
}

function Begin({ close }: { close: () => void }) {
	const [text, setText] = useState(""), [folder, setFolder] = useState(""), [mode, setMode] = useState("");
	return (
		<Dialog title="New session" close={close}>
			<form class="form" onSubmit={(e) => e.preventDefault()}>
				<label>What to do<textarea rows={5} value={text} onInput={(e) => setText(e.currentTarget.value)} /></label>
				<label>Folder <span class="muted">the server's own when it is left out</span><input value={folder} onInput={(e) => setFolder(e.currentTarget.value)} /></label>
				<label>Mode
					<select value={mode} onChange={(e) => setMode(e.currentTarget.value)}>
						<option value="">as it is set</option><option value="plan">plan: read only</option><option value="default">ask before changes</option><option value="accept_edits">accept edits</option>
					</select>
				</label>
				<div class="actions">
					<Button kind="primary" scope="work" disabled={text.trim() ? "" : "Say what to do."} onClick={async () => {
						const body: SubmitTurn = { text, ...(folder && { workspace: folder }), ...(mode && { settings: { mode } as SubmitTurn["settings"] }) };
						const r = await command<Result>("submit_turn", body);
						go("/sessions/" + r.sessionId);
					}}>Begin</Button>
				</div>
			</form>
		</Dialog>
	);
}

function Manage({ s, close, done }: { s: Session; close: () => void; done: () => void }) {
	const [title, setTitle] = useState(s.title ?? ""), [tags, setTags] = useState((s.tags ?? []).join(" ")), [sure, beSure] = useState(false);
	const label = async (body: Omit<LabelSession, "sessionId">) => {
		await command("label_session", { sessionId: s.id, ...body });
		done();
		close();
	};
	return (
		<Dialog title={name(s)} close={close}>
			<form class="form" onSubmit={(e) => e.preventDefault()}>
				<label>Title<input value={title} onInput={(e) => setTitle(e.currentTarget.value)} /></label>
				<label>Tags <span class="muted">words, with blanks between</span><input value={tags} onInput={(e) => setTags(e.currentTarget.value)} /></label>
				<div class="actions">
					<Button kind="primary" scope="work" onClick={() => {
						const want = tags.split(/\s+/).filter(Boolean), had = s.tags ?? [];
						return label({ ...(title !== (s.title ?? "") && { title }), tag: want.filter((t) => !had.includes(t)), untag: had.filter((t) => !want.includes(t)) });
					}}>Save</Button>
					<Button scope="work" onClick={() => label({ archived: !s.archived })}><Icon name="archive" /> {s.archived ? "Take out of the archive" : "Archive"}</Button>
					<Button scope="work" onClick={async () => {
						const r = await command<{ sessionId: string }>("fork_session", { sessionId: s.id });
						go("/sessions/" + r.sessionId);
					}}><Icon name="git-branch" /> Fork</Button>
					{sure ? (
						<Button kind="danger" scope="own" onClick={async () => {
							try {
								await command("delete_session", { sessionId: s.id });
								say("The session is deleted.");
							} catch (e) {
								if (!(e instanceof Refusal && e.code === "session_deleted")) throw e;
							}
							done();
							close();
						}}>Delete for good</Button>
					) : <Button scope="own" onClick={() => beSure(true)}><Icon name="trash-2" /> Delete…</Button>}
				</div>
			</form>
		</Dialog>
	);
}
