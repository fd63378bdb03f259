// Sessions: search, filters, and what can be done with one.
import { useRef, useState } from "preact/hooks";
import { command, download, open, read, Refusal, refused } from "../api";
import type { LabelSession, Reads, SubmitTurn, Told as Result } from "../api.gen";
import { useLive } from "../load";
import { among, ask, at, go } from "../route";
import { Session as One } from "./session";
import type { Session, Thread, Turn } from "../types";
import { Ago, Button, count, counted, Dialog, Empty, Failed, Icon, money, save, say, Skeleton, Status, visible, words, Written, type Tone } from "../ui";

/** What a session is doing, in the words of the command line. */
export function standing(s: Session): { tone: Tone; word: string } {
	if (s.actions?.length) return { tone: "waiting", word: s.actions.length > 1 ? `waits (${s.actions.length})` : "waits" };
	const turns = (s.threads ?? []).map((t) => t.turn).filter((t) => !!t);
	if (turns.some((t) => t.status === "running")) return { tone: "running", word: "running" };
	const later = turns.find((t) => t.status !== "ended");
	return how(later ?? main(s)?.turn ?? undefined);
}

/** The newest thread that no agent was started for. */
const main = (s: Session) => s.threads?.findLast((t) => !t.depth);

/** How a turn is. */
function how(t?: Turn): { tone: Tone; word: string } {
	if (t?.status === "running") return { tone: "running", word: "running" };
	if (t && t.status !== "ended") return { tone: t.status === "waiting" ? "waiting" : "muted", word: t.status.replace("_", " ") };
	if (!t?.outcome) return { tone: "muted", word: "new" };
	return { tone: t.outcome === "completed" ? "ok" : t.outcome === "lost" ? "lost" : t.outcome === "cancelled" ? "muted" : "failed", word: t.outcome.replace("_", " ") };
}

export const name = (s: Session) => visible(s.title || s.id);

export function Sessions({ id }: { id: string }) {
	return id ? <One id={id} /> : <List />;
}

type Asked = Reads["/v1/sessions"]["query"];

// what the server knows: a word that is missing here, or that it doesn't have, is an error of types
const statuses: Record<NonNullable<Asked["status"]>, string> = { running: "Running", waiting: "Waiting", queued: "Queued", ended: "Ended" };
const outcomes: Record<NonNullable<Asked["outcome"]>, string> = {
	completed: "completed", failed: "failed", no_completion: "no completion", blocked: "blocked", denied: "denied", budget: "budget", timed_out: "timed out", cancelled: "cancelled", lost: "lost",
};

interface Filter { status: keyof typeof statuses | ""; outcome: keyof typeof outcomes | ""; workspace: string; tag: string[]; archived: "true" | "false"; q: string }

function List() {
	const q = at.value.query;
	const is = (name: string) => q.get(name) ?? "";
	const tag = is("tag"), archived = is("archived") === "true";
	const filter: Filter = { status: among("status", statuses), outcome: among("outcome", outcomes), workspace: is("workspace"), tag: tag ? [tag] : [], archived: archived ? "true" : "false", q: is("q") };
	const pages = Math.min(10, Number(q.get("pages")) || 1); // of 100: more rows than anybody reads aren't kept
	const before = is("before");
	const { data, error, again } = useLive(JSON.stringify([filter, pages, before]), async (signal) => {
		const all = await read("/v1/sessions", { ...filter, before, limit: 100 }, signal), rows = all.sessions ?? [];
		for (let n = 1; n < pages && all.next; n++) {
			const more = await read("/v1/sessions", { ...filter, before: all.next, limit: 100 }, signal);
			rows.push(...(more.sessions ?? []));
			all.next = more.next;
		}
		return { ...all, sessions: rows };
	});
	const hits = useLive("hits/" + filter.q, async (signal) => (filter.q ? (await read("/v1/search", { q: filter.q, limit: 50 }, signal).catch(() => null))?.hits ?? [] : []), () => false).data ?? [];
	const excerpts = new Map(hits.map((h) => [h.sessionId, h.excerpt]));
	const [chosen, choose] = useState<Session | null>(null), [picked, pick] = useState<Set<string> | "all">(new Set());
	const [busy, setBusy] = useState(false);
	const many = picked === "all" ? data?.total ?? 0 : picked.size;
	const set = (change: Record<string, string>) => { pick(new Set()); ask({ pages: "", before: "", ...change }); };
	const rows = data?.sessions ?? [], [unfolded, unfold] = useState<Map<string, boolean>>(new Map());
	const row = (s: Session, child: boolean, under?: Under) => (
		<Row key={s.id} s={s} child={child} under={under} excerpt={excerpts.get(s.id)} manage={() => choose(s)} on={picked === "all" || picked.has(s.id)} pick={(on) => {
			const next = new Set(picked === "all" ? rows.map((x) => x.id) : picked);
			on ? next.add(s.id) : next.delete(s.id);
			pick(next);
		}} />
	);
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
				{Object.entries({ "": "All", ...statuses }).map(([v, label]) => (
					<button type="button" class="chip" aria-pressed={filter.status === v && !filter.outcome} onClick={() => set({ status: v, outcome: "" })}>{label}</button>
				))}
				<Select label="Outcome" all="any outcome" of={Object.entries(outcomes)} chosen={filter.outcome} choose={(outcome) => set({ outcome, status: "" })} />
				<Select label="Of folder" all="any folder" of={data?.folders} chosen={filter.workspace} choose={(workspace) => set({ workspace })} />
				<Select label="With tag" all="any tag" of={data?.tags} chosen={tag} choose={(tag) => set({ tag })} />
				<button type="button" class="chip" aria-pressed={archived} onClick={() => set({ archived: archived ? "" : "true" })}>Archived</button>
			</div>
			{rows.length > 0 && (
				<div class="bulk" role="group" aria-label="What becomes of chosen sessions">
					{!busy && <label class="check"><input type="checkbox" class="pick" checked={many > 0 && (picked === "all" || rows.every((s) => picked.has(s.id)))} onChange={(e) => pick(e.currentTarget.checked ? new Set(rows.map((s) => s.id)) : new Set())} /> {many ? `${many} chosen` : "Choose"}</label>}
					{!busy && many > 0 && picked !== "all" && data!.total > rows.length && <Button kind="plain" onClick={() => pick("all")}>All {data!.total} that match</Button>}
					{many > 0 && <Bulk filter={filter} picked={picked} many={many} begin={() => setBusy(true)} done={() => { setBusy(false); pick(new Set()); again(); }} />}
				</div>
			)}
			{error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : rows.length === 0 ? (
				filter.q ? <Empty title={`No session has all of these words: ${filter.q}.`} /> : (
					<Empty title="No sessions here.">
						<p class="muted">Begin one with New, or at a terminal with <code>belay run "…"</code>.</p>
					</Empty>
				)
			) : (
				<>
					<ul class="rows" aria-label={counted("Sessions", rows.length, data.total)}>
						{families(rows).flatMap(([s, forks]) => {
							const agents = (s.threads ?? []).filter((t) => t.depth), many = forks.length + agents.length;
							const open = unfolded.get(s.id) ?? forks.some((f) => ["running", "waiting"].includes(standing(f).tone)); // what needs a person is in sight
							const under = many ? { open, what: [forks.length && of(forks.length, "fork"), agents.length && of(agents.length, "agent")].filter(Boolean).join(", "), turn: () => unfold(new Map(unfolded).set(s.id, !open)) } : undefined;
							return [row(s, false, under), ...(open ? [...agents.map((t) => <Agent key={t.id} s={s} t={t} />), ...forks.map((f) => row(f, true))] : [])];
						})}
					</ul>
					{data.total > rows.length && <p class="muted below">{rows.length} of {data.total}</p>}
				</>
			)}
			<div class="actions">{before && <Button onClick={() => set({})}>Newest</Button>}{data?.next && (pages < 4 ? <Button onClick={() => ask({ pages: String(pages + 1) })}>Show more</Button> : <Button onClick={() => ask({ before: data.next!, pages: "" })}>Earlier ones</Button>)}</div>
			{is("new") && <Begin close={() => ask({ new: "" })} />}
			{chosen && <Manage s={chosen} close={() => choose(null)} done={again} />}
		</section>
	);
}

const of = (n: number, what: string) => `${n} ${what}${n > 1 ? "s" : ""}`;

/** Sessions with their forks, and the forks of these, where they are in the list. */
function families(all: Session[]): [Session, Session[]][] {
	const ids = new Map(all.map((s) => [s.id, s])), out = new Map<Session, Session[]>();
	for (const s of all) {
		let root = s;
		for (let up; (up = ids.get(root.forkedFrom?.session ?? "")) && up !== s; ) root = up;
		if (!out.has(root)) out.set(root, []);
		if (root !== s) out.get(root)!.push(s);
	}
	return [...out];
}

/** A filter by one of some values; the chosen one is among them. */
function Select({ label, all, of = [], chosen, choose }: { label: string; all: string; of?: null | string[] | [string, string][]; chosen: string; choose: (v: string) => void }) {
	const options = (of ?? []).map((o): [string, string] => (typeof o === "string" ? [o, o] : o));
	if (chosen && !options.some(([v]) => v === chosen)) options.push([chosen, chosen]);
	return <select class="chip" aria-label={label} value={chosen} data-on={!!chosen} onChange={(e) => choose(e.currentTarget.value)}><option value="">{all}</option>{options.map(([v, text]) => <option value={v}>{visible(text)}</option>)}</select>;
}

/** What is done to each of many sessions: those that were chosen, or all that match on the server. */
function Bulk({ filter, picked, many, begin, done }: { filter: Filter; picked: Set<string> | "all"; many: number; begin: () => void; done: () => void }) {
	const [doing, set] = useState<{ what: string; n: number } | null>(null), [sure, beSure] = useState("");
	const stop = useRef(false);
	const each = async (what: string, f: (id: string) => Promise<unknown>) => {
		stop.current = false;
		begin();
		let ids = picked === "all" ? [] : [...picked], n = 0, failed = 0;
		try {
			for (let next: string | undefined = ""; picked === "all" && next !== undefined; ) { // what is done to them may change whether they match
				const p: Reads["/v1/sessions"]["answer"] = await read("/v1/sessions", { ...filter, before: next, limit: 500 });
				ids.push(...(p.sessions ?? []).map((s) => s.id));
				next = p.next;
			}
			for (const id of ids) {
				if (stop.current) break;
				set({ what, n: n++ });
				await f(id).catch((e) => { if (e instanceof Refusal && e.status !== 401) failed++; else throw e; });
			}
			say(failed ? `${n - failed} of ${ids.length} done; ${failed} were refused.` : `${n} done.`);
		} finally {
			set(null);
			beSure("");
			done();
		}
	};
	const label = (body: object) => (id: string) => command("label_session", { sessionId: id, ...body });
	const archived = filter.archived === "true";
	if (doing) return <><span>{doing.what} {doing.n} of {many}…</span><Button onClick={() => void (stop.current = true)}>Stop</Button></>;
	return (
		<>
			<Button scope="work" onClick={() => each("Archiving", label({ archived: !archived }))}><Icon name="archive" /> {archived ? "Take out of the archive" : "Archive"}</Button>
			<form class="actions" onSubmit={(e) => { e.preventDefault(); const t = new FormData(e.currentTarget).get("tag") as string | null; if (t?.trim()) each("Tagging", label({ tag: t.trim().split(/\s+/) })).catch(say); }}><input name="tag" class="short" placeholder="tag" aria-label="Tag for all of them" disabled={!!refused("work")} title={refused("work")} /></form>
			{sure ? <Button kind="danger" scope="own" onClick={() => each("Deleting", (id) => command("delete_session", { sessionId: id }))}>Delete {many} for good</Button> : <Button scope="own" onClick={() => beSure("yes")}><Icon name="trash-2" /> Delete…</Button>}
		</>
	);
}

/** What is folded under a session. */
interface Under { what: string; open: boolean; turn: () => void }

function Row({ s, child, under, excerpt, manage, on, pick }: { s: Session; child: boolean; under?: Under; excerpt?: string; manage: () => void; on: boolean; pick: (on: boolean) => void }) {
	const is = standing(s);
	const turn = main(s)?.turn;
	const first = s.actions?.[0], call = words(open.value.find((a) => a.actionId === first?.id)?.args);
	const asked = first && (call ? `${first.tool}: ${call}` : first.prompt);
	return (
		<li class={"row" + (child ? " child" : "")}>
			<input type="checkbox" class="pick wide" checked={on} aria-label={"Choose " + name(s)} onChange={(e) => pick(e.currentTarget.checked)} />
			<Status {...is} />
			<a class="main" href={"/sessions/" + s.id}>
				{s.forkedFrom && <span title={"forked from " + s.forkedFrom.session}><Icon name="git-branch" /></span>}
				<span class="name">{name(s)}</span>
				<span class="sub muted">{visible(excerpt || turn?.summary || asked || s.workspace || "")}</span>
			</a>
			<span class="figures muted">
				{under && <button type="button" class="chip fold" aria-expanded={under.open} aria-label={`${under.what} of ${name(s)}`} onClick={under.turn}><Icon name={under.open ? "chevron-down" : "chevron-right"} />{under.what}</button>}
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

/** An agent that a session's agent started. */
function Agent({ s, t }: { s: Session; t: Thread }) {
	return (
		<li class="row child agent">
			<Status {...how(t.turn ?? undefined)} />
			<a class="main" href={"/sessions/" + s.id}><Icon name="bot" /><span class="name">{visible(t.turn?.agent || "agent")}</span><span class="sub muted">{visible(t.turn?.summary || t.turn?.reason || "")}</span></a>
			<span class="figures muted">{t.turn?.calls ? <span class="wide">{of(t.turn.calls, "call")}</span> : null}<Ago time={t.last} /></span>
		</li>
	);
}

function Begin({ close }: { close: () => void }) {
	const kept = "belay.draft";
	const [text, setText] = useState(sessionStorage.getItem(kept) ?? ""), [folder, setFolder] = useState(""), [mode, setMode] = useState("");
	return (
		<Dialog title="New session" close={close}>
			<form class="form" onSubmit={(e) => e.preventDefault()}>
				<label>What to do<textarea rows={5} value={text} onInput={(e) => { setText(e.currentTarget.value); sessionStorage.setItem(kept, e.currentTarget.value); }} /></label>
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
						sessionStorage.removeItem(kept);
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
