// Programs: those that sessions run and ran, what they took, what they printed, input and an end.
import { useEffect, useRef, useState } from "preact/hooks";
import { command, read, refused, Refusal } from "../api";
import type { OutputShown, ProcessesShown, ProgramsListed, RunningProcess, ViewProgram } from "../api.gen";
import { useLive } from "../load";
import { moment } from "../prefs";
import { ask, at, go } from "../route";
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

/** The list; of one session, if it is named. */
export function List({ session }: { session?: string }) {
	const q = at.value.query, status = q.get("status") ?? "", before = q.get("before") ?? "";
	const { data, error, again } = useLive(`programs/${session}/${status}/${before}`, (s) => read<ProgramsListed>("/v1/programs", { sessionId: session, status, before, limit: 100 }, s), about);
	const live = useLive("processes/" + session, () => command<ProcessesShown>("list_processes", session ? { sessionId: session } : {}), about).data?.processes ?? [];
	return (
		<>
			{!session && <header class="bar"><h1>Programs</h1><span class="muted">{live.length ? `${live.length} running` : ""}</span></header>}
			<Chips label="Filters" of={[["", "All"], ["running", "Running"], ["exited", "Exited"], ["ended", "Ended"], ["failed", "Failed"]]} chosen={status} choose={(v) => ask({ status: v, before: "" })} />
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
	const [said, set] = useState<string | null>(null);
	useEffect(() => {
		read<Page>(`/v1/sessions/${p.sessionId}/events`, { about: p.callId, types: "tool.result,tool.failed", last: 1 }).then((w) => set((w.events?.[0] as Fact | undefined)?.payload.output?.text ?? ""), say);
	}, [p.callId]);
	if (said === null) return <Skeleton rows={2} />;
	if (!said) return <Empty title="It printed nothing." />;
	const lines = said.split("\n"), found = find ? lines.filter((l) => l.toLowerCase().includes(find.toLowerCase())) : lines;
	return <pre class="code output" tabIndex={0} aria-label="Output of its call">{found.length ? visible(found.join("\n")) : "Nothing that is shown has this."}</pre>;
}

const part = 65536;
const text = (data: string) => new TextDecoder().decode(Uint8Array.from(atob(data), (c) => c.charCodeAt(0)));

function One({ id }: { id: string }) {
	const session = at.value.query.get("session") ?? "";
	const [out, set] = useState<{ text: string; from: number; end: number; size: number; ended: boolean; status?: string } | null>(null);
	const [error, setError] = useState<Refusal | null>(null), [following, follow] = useState(true), [find, setFind] = useState(""), [typed, setTyped] = useState(""), [sure, beSure] = useState(false);
	const box = useRef<HTMLPreElement>(null);
	const { data } = useLive("program/" + id, (s) => read<ProgramsListed>("/v1/programs", { sessionId: session, limit: 500 }, s), about);
	const p = data?.programs?.find((x) => x.processId === id);
	const ask_ = (offset: number, n = part) => command<OutputShown>("read_process_output", { processId: id, ...(session && { sessionId: session }), offset, bytes: n });
	useEffect(() => {
		let stop = false;
		const look = async () => {
			try {
				let have = await ask_(-part);
				while (!stop) {
					set({ text: text(have.data), from: have.offset, end: have.offset + atob(have.data).length, size: have.size, ended: have.ended, status: have.status });
					if (have.ended || !following) return;
					await new Promise((done) => setTimeout(done, 1000));
					if (!document.hidden) have = await ask_(-part);
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
	}, [out?.text]);
	const whole = async () => {
		const parts: BlobPart[] = [];
		for (let at = 0, size = 1; at < size; ) {
			const o = await ask_(at, 1 << 20);
			const raw = Uint8Array.from(atob(o.data), (c) => c.charCodeAt(0));
			if (!raw.length) break;
			parts.push(raw);
			[at, size] = [o.offset + raw.length, o.size];
		}
		save(id + ".txt", parts);
	};
	const input = async (end: boolean) => {
		await command("write_process_stdin", { sessionId: session || p!.sessionId, processId: id, input: end ? "" : typed + "\n", end });
		setTyped("");
	};
	const lines = (out?.text ?? "").split("\n"), found = find ? lines.filter((l) => l.toLowerCase().includes(find.toLowerCase())) : lines;
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
				<label class="search"><Icon name="search" /><input id="search" type="search" placeholder="Find in the output" aria-label="Find in the output" value={find} onInput={(e) => setFind(e.currentTarget.value)} /></label>
				<label class="check"><input type="checkbox" checked={following} onChange={(e) => follow(e.currentTarget.checked)} /> Follow</label>
				<Button onClick={whole}><Icon name="download" /> Whole output{out?.size ? `, ${bytes(out.size)}` : ""}</Button>
				<Button disabled={out && out.from > 0 ? "" : "This is its beginning."} onClick={async () => {
					follow(false);
					const o = await ask_(Math.max(0, out!.from - part), Math.min(part, out!.from));
					set({ ...out!, text: (text(o.data) + out!.text).slice(0, 4 * part), from: o.offset });
				}}>Earlier</Button>
			</div>
			{error ? <Failed error={error} again={() => go("/programs")} /> : !out ? <Skeleton /> : out.size === 0 ? (p?.callId && out.ended ? <OfCall p={p} find={find} /> : <Empty title={over ? "It printed nothing." : "It printed nothing yet."} />) : (
				<pre class="code output" tabIndex={0} ref={box} aria-label="Output">{found.length ? visible(found.join("\n")) : "Nothing that is shown has this."}</pre>
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
