// What happens, as it happens, for all tabs of this browser: one of them leads and holds a stream of the store and one for
// each session that is on a screen, and tells the others. Events are told once; whoever missed some reads its window again
// when a stream is opened.
import { signal } from "@preact/signals";
import { follow, newID, staleSince, token, type Event } from "./api";

type Take = (e: Event) => void;
interface Told { from: string; since?: number; paths?: string[]; bye?: boolean; path?: string; e?: Event; stale?: number }

export const store = "/v1/stream";
const storeTypes = "turn.*,session.*,action.*,permission.*,tool.*,queue.*,history.*,process.*,task.*,policy.*,channel.*";

/** Too many tabs follow by themselves: this one asks again every few seconds. */
export const polls = signal(false);

const takers = new Map<string, Set<Take>>();
const streams = new Map<string, AbortController>();
const others = new Map<string, { paths: string[]; since: number; heard: number }>();
const me = newID(), began = Date.now();
const channel = new BroadcastChannel("belay.live");
const locks = navigator.locks as LockManager | undefined; // there is none on plain HTTP in a network
let leads = false;

const say = (told: Omit<Told, "from">) => channel.postMessage({ from: me, ...told } satisfies Told);
const tell = () => say({ paths: [...takers.keys()], since: began });
const give = (path: string, e: Event) => takers.get(path)?.forEach((take) => take(e));

/** Hears of what happens on a stream until it is taken back. The event "open" says that something may have been missed. */
export function listen(path: string, take: Take): () => void {
	const all = takers.get(path) ?? new Set();
	takers.set(path, all.add(take));
	if (all.size === 1) tell();
	arrange();
	queueMicrotask(() => all.has(take) && take({ type: "open", id: "", data: null }));
	return () => {
		all.delete(take);
		if (all.size || takers.get(path) !== all) return;
		takers.delete(path);
		tell();
		arrange();
	};
}

/** Which streams this tab holds. */
function held(): string[] {
	if (!token.value) return [];
	const own = [...takers.keys()];
	if (leads) return [...new Set([...own, ...[...others.values()].flatMap((o) => o.paths)])];
	if (locks || polls.value) return [];
	return own.filter((p) => p !== store).slice(0, 1).concat(own.some((p) => p !== store) ? [] : own);
}

function arrange(): void {
	const want = held();
	for (const [path, stop] of streams) if (!want.includes(path)) {
		streams.delete(path);
		stop.abort();
	}
	for (const path of want) if (!streams.has(path)) open(path);
}

function open(path: string): void {
	const stop = new AbortController();
	streams.set(path, stop);
	const pass = (e: Event) => {
		give(path, e);
		if ([...others.values()].some((o) => o.paths.includes(path))) say({ path, e });
	};
	follow(path as "/v1/stream", path === store ? { types: storeTypes } : { since: "now" }, pass, stop.signal).catch((e) => pass({ type: "failed", id: "", data: { status: e.status, code: e.code, message: e.message } }));
}

channel.onmessage = ({ data: t }: MessageEvent<Told>) => {
	if (t.path && t.e) return give(t.path, t.e);
	if (t.stale !== undefined && !leads) return void (staleSince.value = t.stale);
	if (t.bye) others.delete(t.from);
	else if (t.paths) {
		if (!others.has(t.from)) tell(); // who comes learns of those who are here
		others.set(t.from, { paths: t.paths, since: t.since!, heard: Date.now() });
	}
	rank();
	arrange();
};

// without a leader a browser's six connections are shared by tabs that don't know of each other's streams
function rank(): void {
	polls.value = !locks && [...others.values()].filter((o) => o.since < began).length >= 4;
}

setInterval(() => {
	tell();
	for (const [id, o] of others) if (Date.now() - o.heard > 40_000) others.delete(id);
	rank();
	arrange();
	for (const path of takers.keys()) if (!locks && !streams.has(path)) give(path, { type: "open", id: "", data: null });
}, 10_000);
addEventListener("pagehide", () => say({ bye: true }));
addEventListener("pageshow", (e) => e.persisted && tell());
staleSince.subscribe((v) => leads && say({ stale: v }));
token.subscribe(() => arrange());
locks?.request("belay.lead", () => new Promise(() => {
	leads = true;
	tell();
	arrange();
})).catch(() => {});
