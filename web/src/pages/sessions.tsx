// Sessions: search, filters, and what can be done with one.
import { useRef, useState } from "preact/hooks";
import { command, download, open, read, Refusal, refused, type Query } from "../api";
import type { LabelSession, SubmitTurn, Told as Result } from "../api.gen";
import { useLive } from "../load";
import { ask, at, go } from "../route";
import { Session as One } from "./session";
import type { Found, Session, Sessions as All } from "../types";
import { Ago, Button, count, Dialog, Empty, Failed, Icon, money, save, say, Skeleton, Status, visible, words, Written, type Tone } from "../ui";

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

const outcomes = ["completed", "failed", "no_completion", "blocked", "denied", "over_budget", "timed_out", "cancelled", "lost"];

function List() {
	const q = at.value.query;
	const is = (name: string) => q.get(name) ?? "";
	const filter = { status: is("status"), outcome: is("outcome"), workspace: is("workspace"), tag: is("tag"), archived: is("archived") === "true", q: is("q") };
	const pages = Math.min(10, Number(q.get("pages")) || 1); // of 100: more rows than anybody reads aren't kept
	const before = is("before");
	const { data, error, again } = useLive(JSON.stringify([filter, pages, before]), async (signal) => {
		const all: All = await read<All>("/v1/sessions", { ...filter, before, limit: 100 }, signal);
		for (let n = 1; n < pages && all.next; n++) {
			const more = await read<All>("/v1/sessions", { ...filter, before: all.next, limit: 100 }, signal);
			all.sessions.push(...more.sessions);
			Object.assign(all, { more: more.more, next: more.next });
		}
		return all;
	});
	const hits = useLive("hits/" + filter.q, async (signal) => (filter.q ? (await read<Found>("/v1/search", { q: filter.q, limit: 50 }, signal).catch(() => ({}) as Found)).hits ?? [] : []), () => false).data ?? [];
	const excerpts = new Map(hits.map((h) => [h.sessionId, h.excerpt]));
	const [chosen, choose] = useState<Session | null>(null), [picked, pick] = useState<Set<string> | "all">(new Set());
	const many = picked === "all" ? data?.total ?? 0 : picked.size;
	const set = (change: Record<string, string>) => { pick(new Set()); ask({ pages: "", before: "", ...change }); };
	const rows = data?.sessions ?? [];
	return (
		<section class="page" aria-label="Sessions">
			<header class="bar">
				<h1>Sessions</h1><span class="muted">{data ? data.total : ""}</span>
				<label class="search">
					<Icon name="search" />
					<Written type="search" id="search" placeholder="Words in sessions" label="Search sessions" value={filter.q} change={(q) => set({ q })} />
				</label>
				<Button kind="primary" scope="work" onClick={() => ask({ new: "1" })}>
					<Icon name="plus" /> New
				</Button>
			</header>
			<div class="chips" role="group" aria-label="Filters">
				{[["", "All"], ["running", "Running"], ["waiting", "Waiting"], ["queued", "Queued"], ["ended", "Ended"]].map(([v, label]) => (
					<button type="button" class="chip" aria-pressed={filter.status === v && !filter.outcome} onClick={() => set({ status: v!, outcome: "" })}>{label}</button>
				))}
				<select class="chip" aria-label="Outcome" value={filter.outcome} onChange={(e) => set({ outcome: e.currentTarget.value, status: "" })}><option value="">any outcome</option>{outcomes.map((o) => <option value={o}>{o.replace("_", " ")}</option>)}</select>
				<button type="button" class="chip" aria-pressed={filter.archived} onClick={() => set({ archived: filter.archived ? "" : "true" })}>Archived</button>
				{filter.tag && <button type="button" class="chip" aria-pressed="true" onClick={() => set({ tag: "" })}>tag {visible(filter.tag)} ×</button>}
				{filter.workspace && <button type="button" class="chip" aria-pressed="true" onClick={() => set({ workspace: "" })}>{visible(filter.workspace)} ×</button>}
			</div>
			{rows.length > 0 && (
				<div class="bulk" role="group" aria-label="What becomes of chosen sessions">
					<label class="check"><input type="checkbox" class="pick" checked={many > 0 && (picked === "all" || rows.every((s) => picked.has(s.id)))} onChange={(e) => pick(e.currentTarget.checked ? new Set(rows.map((s) => s.id)) : new Set())} /> {many ? `${many} chosen` : "Choose"}</label>
					{many > 0 && picked !== "all" && data!.total > rows.length && <Button kind="plain" onClick={() => pick("all")}>All {data!.total} that match</Button>}
					{many > 0 && <Bulk filter={filter} picked={picked} many={many} done={() => { pick(new Set()); again(); }} />}
				</div>
			)}
			{error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : rows.length === 0 ? (
				filter.q ? <Empty title={`No session has all of these words: ${filter.q}.`} /> : (
					<Empty title="No sessions here.">
						<p class="muted">Begin one with New, or at a terminal with <code>belay run "…"</code>.</p>
					</Empty>
				)
			) : (
				<ul class="rows" aria-label="Sessions">
					{folded(rows).map(([s, child], i) => <Row place={[i + 1, data.total]} key={s.id} s={s} child={child} excerpt={excerpts.get(s.id)} manage={() => choose(s)} on={picked === "all" || picked.has(s.id)} pick={(on) => {
						const next = new Set(picked === "all" ? rows.map((x) => x.id) : picked);
						on ? next.add(s.id) : next.delete(s.id);
						pick(next);
					}} />)}
				</ul>
			)}
			<div class="actions">{before && <Button onClick={() => set({})}>Newest</Button>}{data?.next && (pages < 4 ? <Button onClick={() => ask({ pages: String(pages + 1) })}>Show more</Button> : <Button onClick={() => ask({ before: data.next!, pages: "" })}>Earlier ones</Button>)}</div>
			{is("new") && <Begin close={() => ask({ new: "" })} />}
			{chosen && <Manage s={chosen} close={() => choose(null)} done={again} />}
		</section>
	);
}

/** Forks stand under what they were forked from, where that is in the list. */
function folded(all: Session[]): [Session, boolean][] {
	const ids = new Set(all.map((s) => s.id)), of = (s: Session) => s.forkedFrom?.session ?? "";
	const out: [Session, boolean][] = [];
	const put = (s: Session, child: boolean) => {
		out.push([s, child]);
		if (!child) for (const f of all) if (of(f) === s.id && f.id !== s.id) put(f, true);
	};
	for (const s of all) if (!ids.has(of(s)) || all.some((p) => p.id === of(s) && ids.has(of(p)))) put(s, false);
	return out.filter(([s], i) => out.findIndex(([o]) => o.id === s.id) === i);
}

/** What is done to each of many sessions: those that were chosen, or all that match on the server. */
function Bulk({ filter, picked, many, done }: { filter: Query; picked: Set<string> | "all"; many: number; done: () => void }) {
	const [doing, set] = useState<{ what: string; n: number } | null>(null), [sure, beSure] = useState("");
	const stop = useRef(false);
	const each = async (what: string, f: (id: string) => Promise<unknown>) => {
		stop.current = false;
		let ids = picked === "all" ? [] : [...picked], n = 0, failed = 0;
		for (let next: string | undefined = ""; picked === "all" && next !== undefined; ) { // what is done to them may change whether they match
			const p: All = await read<All>("/v1/sessions", { ...filter, before: next, limit: 500 });
			ids.push(...p.sessions.map((s) => s.id));
			next = p.next;
		}
		for (const id of ids) {
			if (stop.current) break;
			set({ what, n: n++ });
			await f(id).catch((e) => { if (e instanceof Refusal && e.status !== 401) failed++; else throw e; });
		}
		set(null);
		beSure("");
		say(failed ? `${n - failed} of ${ids.length} done; ${failed} were refused.` : `${n} done.`);
		done();
	};
	const label = (body: object) => (id: string) => command("label_session", { sessionId: id, ...body });
	if (doing) return <><span role="status">{doing.what} {doing.n} of {many}…</span><Button onClick={() => void (stop.current = true)}>Stop</Button></>;
	return (
		<>
			<Button scope="work" onClick={() => each("Archiving", label({ archived: !filter.archived }))}><Icon name="archive" /> {filter.archived ? "Take out of the archive" : "Archive"}</Button>
			<form class="actions" onSubmit={(e) => { e.preventDefault(); const t = new FormData(e.currentTarget).get("tag") as string | null; if (t?.trim()) each("Tagging", label({ tag: t.trim().split(/\s+/) })).catch(say); }}><input name="tag" class="short" placeholder="tag" aria-label="Tag for all of them" disabled={!!refused("work")} title={refused("work")} /></form>
			{sure ? <Button kind="danger" scope="own" onClick={() => each("Deleting", (id) => command("delete_session", { sessionId: id }))}>Delete {many} for good</Button> : <Button scope="own" onClick={() => beSure("yes")}><Icon name="trash-2" /> Delete…</Button>}
		</>
	);
}

function Row({ s, place, child, excerpt, manage, on, pick }: { s: Session; place: [number, number]; child: boolean; excerpt?: string; manage: () => void; on: boolean; pick: (on: boolean) => void }) {
	const is = standing(s);
	const turn = s.threads?.at(-1)?.turn;
	const first = s.actions?.[0], call = words(open.value.find((a) => a.actionId === first?.id)?.args);
	const asked = first && (call ? `${first.tool}: ${call}` : first.prompt);
	return (
		<li class={"row" + (child ? " child" : "")} aria-posinset={place[0]} aria-setsize={place[1]}>
			<input type="checkbox" class="pick wide" checked={on} aria-label={"Choose " + name(s)} onChange={(e) => pick(e.currentTarget.checked)} />
			<Status {...is} />
			<a class="main" href={"/sessions/" + s.id}>
				{s.forkedFrom && <Icon name="git-branch" />}
				<span class="name">{name(s)}</span>
				<span class="sub muted">{visible(excerpt || turn?.summary || asked || s.workspace || "")}</span>
			</a>
			<span class="figures muted">
				{s.tags?.map((t) => <a class="tag wide" href={"/sessions?tag=" + encodeURIComponent(t)}>{visible(t)}</a>)}
				{s.counts.turns ? <span class="wide">turn {s.counts.turns}</span> : null}
				{s.tokens ? <span class="wide">{count(s.tokens)} tokens</span> : null}
				{s.cost && <span class="wide">{money(s.cost)}</span>}
				<Ago time={s.updated} />
			</span>
			<Button kind="plain" label={"Change " + name(s)} onClick={manage}><Icon name="menu" /></Button>
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
					<Button onClick={async () => save(s.id + ".belay", [await download(`/v1/sessions/${s.id}/export`, { format: "bundle" })])}><Icon name="download" /> Export</Button>
					{s.workspace && <Button onClick={() => { close(); go("/sessions?workspace=" + encodeURIComponent(s.workspace!)); }}>Others in this folder</Button>}
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
