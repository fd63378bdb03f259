// Programs: those that sessions run and ran, what they took, what they printed, input and an end.
import { useEffect, useRef, useState } from "preact/hooks";
import { command, read, refused, Refusal } from "../api";
import type { OutputShown, ProcessesShown, Reads, RunningProcess, ViewProgram } from "../api.gen";
import { useLive } from "../load";
import { moment } from "../prefs";
import { among, ask, at, before as placeInList, go } from "../route";
import { Marked, Whole } from "../session/inspector";
import type { Fact, Page } from "../types";
import { Ago, Button, bytes, Chips, Copy, Empty, Failed, Icon, length, now, save, say, Skeleton, Status, visible, type Tone } from "../ui";

/** A command line without the shell that runs it. */
const line = (command: string) => command.replace(/^\S*\/(ba|da|z|)sh( --?\w+)*? -c /, "");

const about = (type: string) => type.startsWith("process.");

function standing(p: ViewProgram): { tone: Tone; word: string } {
	if (p.status === "running") return { tone: "running", word: "running" };
	if (p.status === "exited") return p.exit ? { tone: "failed", word: "exit " + p.exit } : { tone: "ok", word: "exit 0" };
	return { tone: p.status === "failed" ? "failed" : "muted", word: p.status };
}

export function Programs({ id }: { id: string }) {
	return id ? <One id={id} /> : <section class="page" aria-label="Programs"><List /></section>;
}

const statuses: Record<NonNullable<Reads["/v1/programs"]["query"]["status"]>, string> = { running: "Running", exited: "Exited", ended: "Ended", failed: "Failed" };

/** The list; of one session, if it is named. */
export function List({ session }: { session?: string }) {
	const status = among("status", statuses), before = placeInList();
	const { data, error, again } = useLive(`programs/${session}/${status}/${before}`, (s) => read("/v1/programs", { sessionId: session, status, before, limit: 100 }, s), about);
	const live = useLive("processes/" + session, () => command<ProcessesShown>("list_processes", session ? { sessionId: session } : {}), about).data?.processes ?? [];
	return (
		<>
			{!session && <header class="bar"><h1>Programs</h1><span class="muted">{live.length ? `${live.length} running` : ""}</span></header>}
			<Chips label="Filters" of={[["", "All"], ...Object.entries(statuses)]} chosen={status} choose={(v) => ask({ status: v, before: "" })} />
			{data?.stale && <p class="note">Not all are listed yet: the list is folded behind the log.</p>}
			{error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : !data.programs?.length ? (
				<Empty title="No program here."><p class="muted">Agents run programs with the tool <code>exec</code>; at a terminal <code>belay process list</code> shows those that run.</p></Empty>
			) : (
				<ul class="rows" aria-label="Programs">
					{data.programs.map((p) => <Row key={p.processId} p={p} live={live.find((l) => l.processId === p.processId)} inSession={!!session} />)}
				</ul>
			)}
			<div class="actions">{before && <Button onClick={() => ask({ before: "" })}>Newest</Button>}{data?.next ? <Button onClick={() => ask({ before: String(data.next) })}>Earlier</Button> : null}</div>
		</>
	);
}

function Row({ p, live, inSession }: { p: ViewProgram; live?: RunningProcess; inSession: boolean }) {
	const took = p.ms ?? (p.status === "running" ? now.value - Date.parse(p.started) : 0);
	return (
		<li class="row">
			<Status {...standing(p)} />
			<a class="main" href={"/programs/" + p.processId + "?session=" + p.sessionId}><code class="name">{visible(line(p.command))}</code><span class="sub muted">{p.server ? "MCP server " + visible(p.server) : visible(p.folder ?? "")} {p.reason && "· " + visible(p.reason)}{p.limit && "· met the limit of " + p.limit}</span></a>
			<span class="figures muted">
				<span class="wide" title="processor time">{length(live?.cpuMs ?? p.cpuMs ?? 0)} cpu</span><span class="wide" title={live ? "memory now" : "memory at most"}>{bytes(live?.memoryBytes ?? p.togetherBytes ?? p.peakBytes)}</span><span class="wide">{length(took)}</span>
				{!inSession && <a href={"/sessions/" + p.sessionId} class="wide">session</a>}<Ago time={p.ended ?? p.started} />
			</span>
		</li>
	);
}

/** What a program printed that its call waited for: it is the call's output. */
function OfCall({ p, find }: { p: ViewProgram; find: string }) {
	const [said, set] = useState<{ text?: string; ref?: { digest: string; size: number } } | null>(null);
	useEffect(() => {
		read<Page>(`/v1/sessions/${p.sessionId}/events`, { about: p.callId, types: "tool.result,tool.failed", last: 1 }).then((w) => {
			const of = (w.events?.[0] as Fact | undefined)?.payload;
			set({ text: of?.output?.text, ref: of?.whole ?? of?.output?.ref });
		}, say);
	}, [p.callId]);
	if (said === null) return <Skeleton rows={2} />;
	if (said.ref) return <Whole session={p.sessionId} digest={said.ref.digest} size={said.ref.size} />;
	if (!said.text) return <Empty title="It printed nothing." />;
	const at = find ? said.text.toLowerCase().indexOf(find.toLowerCase()) : 0;
	return <pre class="code output" tabIndex={0} aria-label="Output of its call">{at < 0 ? "It isn't in the output." : <Marked text={said.text.slice(said.text.lastIndexOf("\n", at) + 1)} find={find} />}</pre>;
}

const part = 65536, most = 4 * part;
const raw = (data: string) => Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
const joined = (a: Uint8Array, b: Uint8Array) => { const all = new Uint8Array(a.length + b.length); all.set(a); all.set(b, a.length); return all; };

interface Shown { bytes: Uint8Array; from: number; size: number; ended: boolean; found?: number }

function One({ id }: { id: string }) {
	const session = at.value.query.get("session") ?? "";
	const [out, set] = useState<Shown | null>(null), [none, lacks] = useState(false);
	const [error, setError] = useState<Refusal | null>(null), [following, follow] = useState(true), [find, setFind] = useState(""), [typed, setTyped] = useState(""), [sure, beSure] = useState(false);
	const box = useRef<HTMLPreElement>(null);
	const { data } = useLive("program/" + id, (s) => read("/v1/programs", { sessionId: session, limit: 500 }, s), about);
	const p = data?.programs?.find((x) => x.processId === id);
	const get = async (offset: number, bytes = part, find = "") => {
		const o = await command<OutputShown>("read_process_output", { processId: id, ...(session && { sessionId: session }), offset, bytes, ...(find && { find }) });
		return { bytes: raw(o.data), from: o.offset, size: o.size, ended: o.ended, found: o.found ?? undefined };
	};
	useEffect(() => {
		if (!following && out) return;
		let stop = false;
		const look = async () => {
			try {
				while (!stop) {
					const have = document.hidden && out ? null : await get(-part);
					if (stop) return;
					if (have) set(have);
					if (have?.ended || !following) return;
					await new Promise((done) => setTimeout(done, 1000));
				}
			} catch (e) {
				if (e instanceof Refusal) setError(e);
			}
		};
		look();
		return () => void (stop = true);
	}, [id, following]);
	useEffect(() => {
		if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
	}, [out, following]);
	// all of the output is searched, by the server
	const seek = async (offset: number, find: string) => {
		const o = await get(offset, part, find);
		lacks(o.found === undefined);
		if (o.found !== undefined) set(o);
		if (box.current) box.current.scrollTop = 0;
	};
	useEffect(() => {
		lacks(false);
		if (!find) return;
		follow(false);
		const timer = setTimeout(() => seek(0, find).catch(say), 300);
		return () => clearTimeout(timer);
	}, [find]);
	const whole = async () => {
		const parts: BlobPart[] = [];
		for (let at = 0, size = 1; at < size; ) {
			const o = await get(at, 1 << 20);
			if (!o.bytes.length) break;
			parts.push(o.bytes);
			[at, size] = [o.from + o.bytes.length, o.size];
		}
		save(id + ".txt", parts);
	};
	const input = async (end: boolean) => {
		await command("write_process_stdin", { sessionId: session || p!.sessionId, processId: id, input: end ? "" : typed + "\n", end });
		setTyped("");
	};
	const end = out ? out.from + out.bytes.length : 0;
	const over = out?.ended || p && p.status !== "running" ? "It has ended." : "";
	return (
		<section class="page" aria-label="Program">
			<header class="bar"><a href="/programs" aria-label="All programs"><Icon name="corner-up-left" /></a><h1><code>{visible(p ? line(p.command) : id)}</code></h1>{p && <Status {...standing(p)} />}<Copy text={id} what="the id" /></header>
			{p && (
				<dl class="facts">
					<div><dt>Session</dt><dd><a href={"/sessions/" + p.sessionId + (p.callId ? "?item=tool_call/" + p.callId : "")}>{p.sessionId}</a></dd></div>
					<div><dt>Folder</dt><dd>{visible(p.folder ?? "–")}</dd></div><div><dt>Started</dt><dd>{moment(p.started)}{p.ended && ", ended " + moment(p.ended)}</dd></div>
					<div><dt>Took</dt><dd>{length(p.cpuMs ?? 0)} of processors, {bytes(p.togetherBytes ?? p.peakBytes)} of memory at most, {bytes(p.writtenBytes)} written{p.limit && `, met the limit of ${p.limit}`}</dd></div>
				</dl>
			)}
			<div class="bar">
				<label class="search"><Icon name="search" /><input id="search" type="search" placeholder="Find in the output" aria-label="Find in the output" value={find} onInput={(e) => setFind(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && find && seek(out?.found !== undefined ? out.found + 1 : 0, find).catch(say)} /></label>
				{find && out?.found !== undefined && <Button onClick={() => seek(out.found! + 1, find)}>Next</Button>}
				<label class="check"><input type="checkbox" checked={following} onChange={(e) => { setFind(""); follow(e.currentTarget.checked); }} /> Follow</label>
				<Button onClick={whole}><Icon name="download" /> Whole output{out?.size ? `, ${bytes(out.size)}` : ""}</Button>
				<Button disabled={out && out.from > 0 ? "" : "This is its beginning."} onClick={async () => {
					follow(false);
					const o = await get(Math.max(0, out!.from - part), Math.min(part, out!.from));
					set({ ...out!, bytes: joined(o.bytes, out!.bytes).slice(0, most), from: o.from });
				}}>Earlier</Button>
				<Button disabled={out && end < out.size ? "" : "This is its end."} onClick={async () => {
					const o = await get(end), all = joined(out!.bytes, o.bytes);
					set({ ...o, bytes: all.slice(-most), from: out!.from + Math.max(0, all.length - most), found: out!.found });
				}}>Later</Button>
			</div>
			{none && <p class="muted" role="status">It isn't in what follows.</p>}
			{error ? <Failed error={error} again={() => go("/programs")} /> : !out ? <Skeleton /> : out.size === 0 ? (p?.callId && out.ended ? <OfCall p={p} find={find} /> : <Empty title={over ? "It printed nothing." : "It printed nothing yet."} />) : (
				<pre class="code output" tabIndex={0} ref={box} aria-label="Output"><Marked text={new TextDecoder().decode(out.bytes)} find={find} /></pre>
			)}
			<form class="say" onSubmit={(e) => { e.preventDefault(); if (!over && !refused("work")) input(false).catch(say); }}>
				<input class="mono grow" value={typed} aria-label="Input" placeholder="A line of input" onInput={(e) => setTyped(e.currentTarget.value)} />
				<Button scope="work" disabled={over} onClick={() => input(false)}>Send</Button>
				<Button scope="work" disabled={over} onClick={() => input(true)}>End of input</Button>
				{sure ? <Button kind="danger" scope="work" disabled={over} onClick={() => command("terminate_process", { sessionId: session || p!.sessionId, processId: id, reason: "ended in the console" })}>End it now</Button> : <Button scope="work" disabled={over} onClick={() => beSure(true)}>End…</Button>}
			</form>
		</section>
	);
}
