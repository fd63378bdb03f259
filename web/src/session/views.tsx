// Other views of a session: what changed, its facts as they are, what fills the context.
import { useEffect, useState } from "preact/hooks";
import { read, Refusal } from "../api";
import type { BlockFile, ContentShown, ContextUsage } from "../api.gen";
import { hunks } from "../diff";
import { useLive } from "../load";
import { ask, at } from "../route";
import type { Fact, Page, Session } from "../types";
import { Ago, Button, Chips, clock, count, Empty, Failed, Icon, Skeleton, visible, Written } from "../ui";
import { Diff } from "../pages/approvals";
import { Knot } from "./rope";

interface Change { path: string; op: string; at: string; call?: string; event: string; before?: string; after?: string; kept: boolean }

/** All files that a session changed, from what they were before its first change to what its last made of them. */
export function Changes({ s }: { s: Session }) {
	const { data, error, again } = useLive("changes/" + s.id, async (signal) => {
		const all: Fact[] = [];
		let behind = "";
		for (let n = 0; n < 20; n++) { // 20,000 facts of changes are more than anybody reads
			const p: Page = await read<Page>(`/v1/sessions/${s.id}/events`, behind ? { types: "artifact.changed", behind, limit: 1000 } : { types: "artifact.changed", first: 1000 }, signal);
			all.push(...((p.events ?? []) as Fact[]));
			if (!p.moreNewer) break;
			behind = p.newer;
		}
		const decided = await read("/v1/decisions", { sessionId: s.id, limit: 500 }, signal);
		return { all, decided: new Map(decided.decisions?.map((d) => [d.callId, d])) };
	}, (type) => type.startsWith("tool.") || type.startsWith("history."));
	if (error) return <Failed error={error} again={again} />;
	if (!data) return <Skeleton />;
	const files = new Map<string, Change[]>();
	for (const f of data.all) {
		const p = f.payload;
		if (p.kind !== "file") continue;
		const list = files.get(p.path) ?? [];
		list.push({ path: p.path, op: p.op, at: f.timestamp, call: f.toolCallId, event: f.eventId, before: p.before?.digest, after: p.after?.digest, kept: !!p.kept });
		files.set(p.path, list);
	}
	if (!files.size) return <Empty title="This session changed no file." />;
	return (
		<div class="changes">
			{[...files].map(([path, list]) => {
				const first = list[0]!, end = list.at(-1)!;
				const by = list.map((c) => data.decided.get(c.call ?? "")).filter((d) => d !== undefined);
				return (
					<details key={path} open={files.size <= 5}>
						<summary><Knot kind="file_change" by={by.some((d) => d.source === "person") ? "person" : by.length ? "rule" : "nobody"} /> <code>{visible(path)}</code> <span class="muted">{end.op}{list.length > 1 ? `, ${list.length} times` : ""} <Ago time={end.at} /></span></summary>
						<p class="muted">decided by {by.length ? [...new Set(by.map((d) => (d.source === "person" ? "a person" : d.rule)))].join(", ") : "–"}{end.call && <> · <a href={`/sessions/${s.id}?item=tool_call/${end.call}`}>the call</a></>}</p>
						<Between session={s.id} path={path} op={end.op} before={first.before} after={end.after} kept={first.kept} />
					</details>
				);
			})}
		</div>
	);
}

/** A content as text; null: it is none, or too long to be shown. */
export async function whole(session: string, digest?: string): Promise<string | null> {
	let out = "";
	for (let offset = 0; digest; ) {
		const c: ContentShown = await read<ContentShown>(`/v1/content/${digest}`, { session, offset });
		if (c.data) return null;
		out += c.text ?? "";
		if (!c.next) break;
		if (out.length > 1 << 20) return null;
		offset = c.next;
	}
	return out;
}

function Between({ session, path, op, before, after, kept }: { session: string; path: string; op: string; before?: string; after?: string; kept: boolean }) {
	const [f, set] = useState<BlockFile | null>(null), [why, say] = useState("");
	useEffect(() => {
		Promise.all([whole(session, before), whole(session, after)]).then(([a, b]) => {
			if (a === null || b === null) return say("It is no text, or too long to be shown here.");
			const h = hunks(a, b), all = h.flatMap((x) => x.lines);
			set({ path, op, added: all.filter((l) => l[0] === "+").length, removed: all.filter((l) => l[0] === "-").length, hunks: h } as BlockFile);
		}, (e) => say(e instanceof Refusal ? e.message : String(e)));
	}, [before, after]);
	if (why) return <p class="muted">{visible(why)}</p>;
	if (!before && !after && !kept) return <p class="muted">What was in it isn't kept.</p>;
	return f ? <Diff f={f} /> : <Skeleton rows={2} />;
}

const families: [string, string][] = [["", "All"], ["model.*", "Model"], ["tool.*", "Tools"], ["permission.*,action.*,sandbox.*", "Decisions"], ["process.*", "Programs"], ["turn.*,queue.*,run.*", "Turns"], ["context.*,history.*", "Context"], ["cost.*", "Cost"]];

export function Events({ id }: { id: string }) {
	const q = at.value.query, before = q.get("before") ?? "", types = q.get("types") ?? "", words = q.get("q") ?? "", about = q.get("about") ?? "";
	const { data, error, again } = useLive(`events/${id}/${before}/${types}/${words}/${about}`, (s) => read<Page>(`/v1/sessions/${id}/events`, { types, q: words, about, ...(before ? { before, limit: 100 } : { last: 100 }) }, s), (type) => type !== "text" && type !== "output", `/v1/sessions/${id}/stream`);
	return (
		<div class="events">
			<div class="bar">
				<Chips label="Types" of={families} chosen={types} choose={(v) => ask({ types: v, before: "" })} />
				<label class="search"><Icon name="search" /><Written id="search" type="search" placeholder="Words in facts" label="Search facts" value={words} change={(q) => ask({ q, before: "" })} /></label>
				{about && <button type="button" class="chip" aria-pressed="true" onClick={() => ask({ about: "" })}>about {about.slice(0, 13)} ×</button>}
			</div>
			{error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : (
				<>
					<div class="actions">
						{data.moreOlder && <Button onClick={() => ask({ before: data.older })}>Earlier</Button>}
						{before && <Button onClick={() => ask({ before: "" })}>Newest</Button>}
					</div>
					{!data.events?.length && <Empty title={data.moreOlder ? "Nothing among these facts; look earlier." : "No fact is like this."} />}
					{(data.events as Fact[] | undefined)?.map((e) => (
						<details key={e.eventId} open={!!about}>
							<summary><span class="muted mono">{clock(e.timestamp)}</span> <code>{e.type}</code> <span class="muted">{visible(short(e))}</span></summary>
							<pre class="code" tabIndex={0}>{visible(JSON.stringify(e, null, 2))}</pre>
						</details>
					))}
				</>
			)}
		</div>
	);
}

function short(e: Fact): string {
	const p = e.payload ?? {};
	return String(p.name ?? p.tool ?? p.rule ?? p.reason ?? p.path ?? p.outcome ?? p.model ?? p.text?.text ?? "").slice(0, 100);
}

export function Context({ s }: { s: Session }) {
	const thread = s.threads?.find((t) => !t.depth)?.id ?? "";
	const { data, error, again } = useLive("context/" + thread, (sig) => read<ContextUsage>(`/v1/threads/${thread}/context`, {}, sig), (type) => type.startsWith("turn.") || type.startsWith("history."));
	if (!thread) return <Empty title="Nothing was said yet." />;
	if (error) return <Failed error={error} again={again} />;
	if (!data) return <Skeleton />;
	const kinds = data.kinds ?? [], most = Math.max(data.usable ?? 0, data.used, 1);
	return (
		<div class="page">
			<dl class="tiles">
				<div><dt>Full</dt><dd>{data.full !== undefined && data.usable ? data.full + " %" : "unknown"}</dd></div><div><dt>Used</dt><dd>{count(data.used)}</dd></div>
				<div><dt>Usable</dt><dd>{data.usable ? count(data.usable) : "unknown"}</dd></div><div><dt>Shortened at</dt><dd>{data.compactAt ? data.compactAt + " %" : "never"}</dd></div><div><dt>Shortened</dt><dd>{data.boundaries?.length ?? 0}×</dd></div>
			</dl>
			<svg class="stack" viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label="What fills the context; the table has the figures">
				{kinds.map((k, i) => <rect key={k.kind} class={"part" + (i % 6)} x={(kinds.slice(0, i).reduce((n, x) => n + x.tokens, 0) / most) * 1000} width={(k.tokens / most) * 1000} height="24"><title>{k.kind}: {k.tokens}</title></rect>)}
			</svg>
			<div class="table" tabIndex={0} role="region" aria-label="What fills the context"><table>
				<thead><tr><th scope="col">Kind</th><th scope="col">Items</th><th scope="col">Tokens</th></tr></thead>
				<tbody>{kinds.map((k, i) => <tr><th scope="row"><svg class="dot" viewBox="0 0 8 8" aria-hidden="true"><rect class={"part" + (i % 6)} width="8" height="8" /></svg> {k.kind}</th><td>{k.items}</td><td>{count(k.tokens)}</td></tr>)}</tbody>
			</table></div>
			{data.largest?.length ? <section><h2>The largest</h2><ul class="points">{data.largest.slice(0, 10).map((p) => <li><code>{visible(p.name)}</code> <span class="muted">{p.kind}, {count(p.tokens)} tokens</span></li>)}</ul></section> : null}
			{data.pins?.length ? <section><h2>Pinned</h2><ul class="points">{data.pins.map((p) => <li>{visible(JSON.stringify(p))}</li>)}</ul></section> : null}
		</div>
	);
}
