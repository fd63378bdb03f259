// A session's time as bars: what waited in the queue, what the model took, the tools, and people.
import { useRef, useState } from "preact/hooks";
import { read } from "../api";
import { useLive } from "../load";
import { ask, at } from "../route";
import type { Fact, Page } from "../types";
import { Button, clock, Empty, Failed, length, now, Skeleton, visible } from "../ui";
import { Knot, legend, tells, type By } from "./rope";

type Kind = "queue" | "model" | "tool" | "human";
interface Bar { turn: string; kind: Kind; from: number; to: number; label: string; item: string; by: By; failed?: boolean; open?: boolean }

const timed = "turn.submitted,turn.started,turn.completed,turn.failed,model.requested,model.completed,model.failed,permission.evaluated,permission.resolved,tool.started,tool.result,tool.failed,action.required,action.resolved";

/** What took how long, from facts, and how turns ended. */
export function bars(facts: Fact[], now: number): { all: Bar[]; ends: Map<string, string>; threads: Map<string, string> } {
	const open = new Map<string, Bar>(), all: Bar[] = [], names = new Map<string, string>(), decided = new Map<string, By>(), ends = new Map<string, string>(), threads = new Map<string, string>();
	const begin = (key: string, f: Fact, b: Pick<Bar, "kind" | "label" | "item"> & { by?: By }) => {
		const from = Date.parse(f.timestamp);
		open.set(key, { ...b, by: b.by ?? "nobody", turn: f.turnId ?? "", from, to: Math.max(from, now), open: true });
		threads.set(f.turnId ?? "", f.threadId ?? "");
	};
	const end = (key: string, f: Fact, failed = false, by?: By) => {
		const b = open.get(key);
		if (!b) return;
		open.delete(key);
		all.push({ ...b, to: Date.parse(f.timestamp), failed, open: false, by: by ?? b.by });
	};
	for (const f of facts) {
		const p = f.payload, turn = f.turnId ?? "", call = f.toolCallId ?? "";
		switch (f.type) {
			case "turn.submitted": begin("q" + turn, f, { kind: "queue", label: "waits in the queue", item: "user_message/" + turn, by: "person" }); break;
			case "turn.started": end("q" + turn, f); break;
			case "turn.completed": case "turn.failed":
				ends.set(turn, f.type === "turn.completed" ? "completed" : p.outcome || "failed");
				end("q" + turn, f);
				for (const k of [...open.keys()]) if (k.endsWith("@" + turn)) end(k, f, true);
				break;
			case "model.requested": begin(`m${f.stepId}@${turn}`, f, { kind: "model", label: p.model || p.provider, item: "agent_message/" + f.stepId }); break;
			case "model.completed": end(`m${f.stepId}@${turn}`, f); for (const c of p.calls ?? []) names.set(c.id, c.name); break;
			case "model.failed": end(`m${f.stepId}@${turn}`, f, true); break;
			case "permission.evaluated": if (p.decision !== "ask") decided.set(call, p.source === "person" ? "person" : "rule"); break;
			case "permission.resolved": decided.set(call, p.by === "deadline" ? "nobody" : "person"); break;
			case "tool.started": begin(`t${call}@${turn}`, f, { kind: "tool", label: p.name ?? names.get(call) ?? "tool", item: "tool_call/" + call, by: decided.get(call) }); break;
			case "tool.result": end(`t${call}@${turn}`, f, !!p.exit); break;
			case "tool.failed": end(`t${call}@${turn}`, f, true); break;
			case "action.required": begin(`a${f.actionId}@${turn}`, f, { kind: "human", label: "waits for a person", item: "question/" + f.actionId, by: "person" }); break;
			case "action.resolved": end(`a${f.actionId}@${turn}`, f, false, p.by === "deadline" ? "nobody" : "person"); break;
		}
	}
	return { all: [...all, ...open.values()].sort((a, b) => a.from - b.from), ends, threads };
}

const gap = 60_000; // idle for longer is folded

export interface Axis { place: (t: number) => number; time: (at: number) => number; folds: { at: number; ms: number }[]; length: number }

/** Places times on an axis without long gaps. */
export function axis(all: Bar[]): Axis {
	const marks: { from: number; to: number; at: number }[] = [], folds: Axis["folds"] = [];
	for (const b of all) {
		const open = marks.at(-1);
		if (open && b.from <= open.to + gap) open.to = Math.max(open.to, b.to);
		else marks.push({ from: b.from, to: b.to, at: 0 });
	}
	const idle = marks.reduce((n, m) => n + m.to - m.from, 0) / 20; // what a fold takes
	for (let n = 1; n < marks.length; n++) {
		const before = marks[n - 1]!, end = before.at + before.to - before.from;
		folds.push({ at: end + idle / 2, ms: marks[n]!.from - before.to });
		marks[n]!.at = end + idle;
	}
	const last = marks.at(-1), total = last ? last.at + last.to - last.from : 1;
	return {
		folds, length: Math.max(1, total),
		place: (t) => { const m = marks.findLast((x) => x.from <= t) ?? marks[0]!; return m.at + Math.max(0, Math.min(t, m.to) - m.from); },
		time: (x) => { const m = marks.findLast((m) => m.at <= x) ?? marks[0]!; return Math.min(m.to, m.from + x - m.at); },
	};
}

const words: Record<Kind, string> = { queue: "queue", model: "model", tool: "tool", human: "a person" };
const high = 24, head = 24;

export function Timeline({ id, agents }: { id: string; agents: Set<string> }) {
	const q = at.value.query, before = q.get("before") ?? "", table = q.get("as") === "table", item = q.get("item") ?? "";
	const [zoomed, until] = (q.get("zoom") ?? "").split("-").map(Number) as [number, number | undefined];
	const { data, error, again } = useLive(`timeline/${id}/${before}`, (s) => read<Page>(`/v1/sessions/${id}/events`, { types: timed, ...(before ? { before, limit: 400 } : { last: 400 }) }, s), (type) => timed.split(",").includes(type), `/v1/sessions/${id}/stream`);
	const [range, drag] = useState<[number, number] | null>(null), area = useRef<SVGSVGElement>(null);
	if (error) return <Failed error={error} again={again} />;
	if (!data) return <Skeleton />;
	const facts = (data.events ?? []) as Fact[], whole = bars(facts, Date.now());
	if (whole.all.some((b) => b.open)) void now.value; // it grows
	if (!whole.all.length) return <Empty title="Nothing took any time yet." />;
	const first = whole.all[0]!.from, last = Math.max(...whole.all.map((b) => b.to));
	const from = until ? zoomed : first, to = until ? until : last;
	const all = whole.all.filter((b) => b.to >= from && b.from <= to).map((b) => ({ ...b, from: Math.max(from, b.from), to: Math.min(to, b.to) }));
	const x = axis(all), left = (t: number) => (x.place(t) / x.length) * 100;
	/** Shows the time between two moments; all of it where they leave out nothing. */
	const zoom = (a: number, b: number) => ask({ zoom: a <= first && b >= last ? "" : Math.round(Math.max(first, a)) + "-" + Math.round(Math.min(last, Math.max(a + 1, b))) });
	const scale = (by: number) => {
		const mid = x.length / 2, half = mid * by;
		zoom(by > 1 ? from - (to - from) / 2 : x.time(mid - half), by > 1 ? to + (to - from) / 2 : x.time(mid + half));
	};
	const sums = (Object.keys(words) as Kind[]).map((k) => [k, all.filter((b) => b.kind === k).reduce((n, b) => n + b.to - b.from, 0)] as const);
	const lanes = new Map<Bar, number>();
	let line = 0, ended = 0;
	const heads = [...new Set(all.map((b) => b.turn))].map((turn) => {
		const mine = all.filter((b) => b.turn === turn), ends: number[] = [], rested = ended > 0 && mine[0]!.from > ended; // nothing ran in between
		if (rested) line += 0.5;
		const top = line;
		for (const b of mine) {
			let lane = ends.findIndex((e) => e <= b.from);
			if (lane < 0) lane = ends.push(0) - 1;
			ends[lane] = b.to;
			lanes.set(b, line + lane);
		}
		line += ends.length;
		ended = Math.max(ended, ...mine.map((b) => b.to));
		return { turn, top, of: ends.length, mine, rested, word: whole.ends.get(turn) ?? "", by: (agents.has(whole.threads.get(turn) ?? "") ? "nobody" : "person") as By };
	});
	const point = (e: PointerEvent) => ((e.clientX - area.current!.getBoundingClientRect().left) / area.current!.clientWidth) * x.length;
	return (
		<div class="timeline">
			<div class="bar">
				{data.moreOlder && <Button onClick={() => ask({ before: data.older, zoom: "" })}>Earlier</Button>}{before && <Button onClick={() => ask({ before: "", zoom: "" })}>Newest</Button>}
				<span class="legend">
					{sums.map(([k, ms]) => <span><svg class="dot" viewBox="0 0 8 8" aria-hidden="true"><rect class={"bar-" + k} width="8" height="8" /></svg> {words[k]} {ms > 0 && took(ms)}</span>)}<span><svg class="dot" viewBox="0 0 8 8" aria-hidden="true"><rect class="went" y="5" width="8" height="3" /></svg> failed</span>
					<span>decided:</span>{legend.map(([by, word]) => <span><Knot kind="tool_call" by={by} /> {word}</span>)}
				</span>
				<span class="grow" />
				<span class="actions">
					<Button onClick={() => scale(0.5)}>Zoom in</Button><Button disabled={until ? "" : "All of it is shown."} onClick={() => scale(2)}>Zoom out</Button><Button disabled={until ? "" : "All of it is shown."} onClick={() => ask({ zoom: "" })}>All</Button>
					<Button onClick={() => ask({ as: table ? "" : "table" })}>{table ? "As bars" : "As a table"}</Button>
				</span>
			</div>
			{all.length === 0 ? <Empty title="Nothing took time in this range." /> : table ? (
				<div class="table" tabIndex={0} role="region" aria-label="What took how long"><table>
					<thead><tr><th scope="col">Began</th><th scope="col">Turn</th><th scope="col">What</th><th scope="col">Kind</th><th scope="col">Decided</th><th scope="col">Took</th></tr></thead>
					<tbody>{all.map((b) => <tr><th scope="row">{clock(b.from)}</th><td class="mono">{b.turn.slice(-6)}</td><td><button type="button" class="link" onClick={() => ask({ item: b.item, at: "" })}>{visible(b.label)}</button></td><td>{words[b.kind]}{b.failed ? ", failed" : b.open ? ", goes on" : ""}</td><td>{b.by === "nobody" ? "–" : "by a " + b.by}</td><td>{took(b.to - b.from)}</td></tr>)}</tbody>
				</table></div>
			) : (
				<div class="gantt" tabIndex={0} role="region" aria-label="Time as bars; there is a table, too" onKeyDown={(e) => { if (e.key === "+" || e.key === "-") { e.preventDefault(); e.stopPropagation(); scale(e.key === "+" ? 0.5 : 2); } }}>
					<ol class="heads">
						{heads.map((h, n) => (
							<li class={["item", /lost/.test(h.word) && "frayed", h.rested && "rested", heads[n + 1]?.rested && "resting"].filter(Boolean).join(" ")} style={{ height: h.of * high + "px" }}>
								<span class={"knot " + (/lost/.test(h.word) ? "lost" : h.word && h.word !== "completed" ? "failed" : "")}><Knot kind={h.word ? "turn_end" : "user_message"} by={h.by} tone={/lost/.test(h.word) ? "lost" : h.word === "completed" ? "ok" : h.word ? "failed" : "running"} /></span>
								<button type="button" class="plain" title={`Zoom to this turn${h.word && ", " + h.word}`} onClick={() => zoom(h.mine[0]!.from, Math.max(...h.mine.map((b) => b.to)))}>{h.turn.slice(-6)} {h.word === "completed" ? "" : h.word}</button>
							</li>
						))}
					</ol>
					<svg class="time" ref={area} height={line * high + head} role="presentation"
						onPointerDown={(e) => { if (!e.button && e.pointerType !== "touch") drag([point(e), point(e)]); }}
						onPointerMove={(e) => range && drag([range[0], point(e)])}
						onPointerLeave={() => drag(null)}
						onPointerUp={(e) => {
							if (range && Math.abs(point(e) - range[0]) / x.length > 0.01) zoom(x.time(Math.min(range[0], point(e))), x.time(Math.max(range[0], point(e))));
							drag(null);
						}}>
						{[0, 1, 2, 3, 4].map((n) => <text class="tick" x={n * 20 + "%"} y="14" dx="2">{tick(x.time((n / 5) * x.length), x.length)}</text>)}
						{heads.map((h) => <line x1="0" x2="100%" y1={h.top * high + head} y2={h.top * high + head} class="rule" />)}
						{x.folds.map((f) => <><line x1={(f.at / x.length) * 100 + "%"} x2={(f.at / x.length) * 100 + "%"} y1={head} y2="100%" class="fold"><title>{length(f.ms)} without anything, folded</title></line><text x={(f.at / x.length) * 100 + "%"} y={head + 12} text-anchor="middle">⋯ {length(f.ms)}</text></>)}
						{all.map((b) => {
							const y = lanes.get(b)! * high + head, at = left(b.from), wide = left(b.to) - at;
							return (
								<svg x={at + "%"} y={y} overflow="visible">
									<rect class={["bit", "bar-" + b.kind, b.open && "open", b.item === item && "on"].filter(Boolean).join(" ")} style={{ width: `max(2px, ${wide}%)` }} y="4" height="16" rx="2" onClick={() => ask({ item: b.item, at: "" })}><title>{b.label}, {took(b.to - b.from)}{b.failed ? ", failed" : ""}{b.by !== "nobody" ? `, ${tells("", b.by)}` : ""}</title></rect>
									{b.failed && <rect class="went" style={{ width: `max(2px, ${wide}%)` }} y="17" height="3" pointer-events="none" />}
									{(b.kind === "tool" || b.kind === "human") && wide > 2 && <Knot kind={b.kind === "tool" ? "tool_call" : "question"} by={b.by} x={2} y={4} width={16} height={16} />}
								</svg>
							);
						})}
						{range && <rect class="range" x={(Math.min(...range) / x.length) * 100 + "%"} width={(Math.abs(range[1] - range[0]) / x.length) * 100 + "%"} height="100%" />}
					</svg>
				</div>
			)}
		</div>
	);
}

/** How long something took; what is short, in parts of a second. */
const took = (ms: number) => (ms < 10_000 ? (ms / 1000).toFixed(ms < 1000 ? 3 : 1) + " s" : length(ms));

/** A moment on the axis, as exactly as what is shown of it asks for. */
const tick = (t: number, shown: number) => clock(t) + (shown < 20_000 ? "." + String(Math.floor(t) % 1000).padStart(3, "0") : "");
