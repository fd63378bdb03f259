// The one place that speaks to the server: reads, commands and streams of docs/openapi.json.
import { signal } from "@preact/signals";
import type { Action, CallerShown, CommandName, ReadPath, Reads, TokenCreated, TokensShown } from "./api.gen";

const kept = "belay.token";

/** The token that requests carry; empty: nobody is signed in. */
export const token = signal(localStorage.getItem(kept) ?? "");

/** Who is signed in; null until the server has said so. */
export const caller = signal<CallerShown | null>(null);

/** The questions that are open. */
export const open = signal<Action[]>([]);

/** What tokens are called, by their ids: an owner sees all, others their own. */
export const names = signal(new Map<string, string>());

async function learnNames(): Promise<void> {
	const is = caller.value!, own = is.tokenId ? [{ tokenId: is.tokenId, name: is.name }] : [];
	const all = may("admin") ? (await command<TokensShown>("list_tokens", {})).tokens ?? [] : own;
	names.value = new Map(all.map((t) => [t.tokenId, t.name || "token …" + t.tokenId.slice(-6)]));
}

/** Why the last token doesn't count any more. */
export const signedOut = signal("");

/** Since when nothing is heard of the server; 0: it answers. */
export const staleSince = signal(0);

/** The server is another build than the one that this page is of. */
export const newer = signal(false);
let mine = "";

// after the server was away: is the page that it has the one that this is?
async function compare(): Promise<void> {
	const tag = (await fetch("/app.js", { method: "HEAD", cache: "no-store" }).catch(() => null))?.headers.get("ETag") ?? "";
	if (mine && tag && tag !== mine) newer.value = true;
	mine ||= tag;
}
compare();

/** The paths that the server's description has; null until it was read. */
export const described = signal<Set<string> | null>(null);
const keptPaths = "belay.described";

// once for a build of the server
async function describe(): Promise<void> {
	const [tag, paths] = JSON.parse(sessionStorage.getItem(keptPaths) ?? "[]");
	if (tag && tag === mine) return void (described.value = new Set(paths));
	const all = Object.keys((await read("/v1/openapi.json")).paths as object);
	sessionStorage.setItem(keptPaths, JSON.stringify([mine, all]));
	described.value = new Set(all);
}

export const may = (scope: string) => caller.value?.scopes?.includes(scope) ?? false;

/** Why a button can't be used now; empty: it can. */
export function refused(scope: string): string {
	if (staleSince.value) return "The server doesn't answer.";
	if (may(scope)) return "";
	return `A token of role ${caller.value?.role ?? "…"} may not do this; one of role ${{ work: "operator or owner", answer: "approver or owner" }[scope] ?? "owner"} may.`;
}

/** What the server said no to, and what to do about it. */
export class Refusal extends Error {
	constructor(readonly status: number, readonly code: string, detail: string, readonly hint = "", readonly field = "") {
		super(detail);
	}
}

/** What a page made of an answer that isn't as it is described. */
export const unexpected = (e: unknown) => new Refusal(0, "bad_answer", "What the server answered can't be shown: " + (e instanceof Error ? e.message : e), "Is the page of another build than the server? Load it anew.");

async function refusal(r: Response): Promise<Refusal> {
	const p = await r.json().catch(() => ({}));
	return new Refusal(r.status, p.code ?? "", p.detail ?? r.statusText, p.hint, p.field);
}

async function send(path: string, init: RequestInit = {}): Promise<Response> {
	const headers = new Headers(init.headers);
	if (token.value) headers.set("Authorization", "Bearer " + token.value);
	let r: Response;
	try {
		r = await fetch(path, { ...init, headers, credentials: "omit" });
	} catch (e) {
		if (!init.signal?.aborted) staleSince.value ||= Date.now();
		throw e instanceof Error && init.signal?.aborted ? e : new Refusal(0, "unreachable", "The server doesn't answer.", "It is tried again by itself.");
	}
	if (staleSince.value) compare();
	staleSince.value = 0;
	if (r.ok) return r;
	const err = await refusal(r);
	if (err.status === 401 && token.value) forget(err.message);
	throw err;
}

/** What is answered; a proxy may answer with something else. */
async function json(r: Response): Promise<unknown> {
	return r.json().catch((e) => {
		throw e instanceof SyntaxError ? new Refusal(r.status, "bad_answer", "The answer to " + new URL(r.url).pathname + " isn't the server's.", "Is something between this page and the server?") : e;
	});
}

export type Query = Record<string, string | number | boolean | string[] | undefined>;

/** What is not known of a query: a value may be empty, which says nothing. */
type Open<Q> = { [name in keyof Q]: Q[name] | "" };

/** Reads what a path answers. Of a path that names what is meant, the caller says the type. */
export async function read<P extends keyof Reads>(path: P, query?: Open<Reads[P]["query"]>, signal?: AbortSignal): Promise<Reads[P]["answer"]>;
export async function read<T>(path: Exclude<ReadPath, keyof Reads>, query?: Query, signal?: AbortSignal): Promise<T>;
export async function read(path: string, query: Query = {}, signal?: AbortSignal): Promise<unknown> {
	const q = new URLSearchParams();
	for (const [name, v] of Object.entries(query)) {
		if (Array.isArray(v)) v.forEach((x) => q.append(name, x));
		else if (v !== undefined && v !== "") q.set(name, String(v));
	}
	return json(await send(path + (q.size ? "?" + q : ""), { signal }));
}

export async function download(path: ReadPath, query: Record<string, string>): Promise<Blob> {
	return (await send(path + "?" + new URLSearchParams(query))).blob();
}

export async function text(path: ReadPath): Promise<string> {
	return (await send(path)).text();
}

/** A new id; crypto.randomUUID is there on secure origins only. */
export function newID(): string {
	return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Performs a command. One that isn't answered is sent again under the same key, so that it is done once. */
export async function command<T = unknown>(name: CommandName, body: object, key = newID()): Promise<T> {
	for (let wait = 300; ; wait *= 2) {
		try {
			const r = await send("/v1/commands/" + name, {
				method: "POST", body: JSON.stringify(body),
				headers: { "Content-Type": "application/json", "Idempotency-Key": key },
			});
			return await json(r) as T;
		} catch (e) {
			if (!(e instanceof Refusal) || (e.code !== "unreachable" && e.status !== 503) || wait > 5000) throw e;
			await new Promise((done) => setTimeout(done, wait));
		}
	}
}

export interface Event {
	type: string;
	id: string;
	data: any;
}

/** Follows a stream until the signal says to stop. It goes on from the last event that it had. */
export async function follow(path: ReadPath, query: Query, take: (e: Event) => void, stop: AbortSignal): Promise<void> {
	let last = "", wait = 250;
	while (!stop.aborted) {
		const cut = new AbortController();
		const end = () => cut.abort();
		stop.addEventListener("abort", end);
		// a comment comes every 15 seconds: what is silent for longer is dead
		let silence = setTimeout(end, 20_000);
		try {
			const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== undefined).map(([k, v]) => [k, String(v)]));
			const r = await send(path + (q.size ? "?" + q : ""), { headers: last ? { "Last-Event-ID": last } : {}, signal: cut.signal });
			wait = 250;
			take({ type: "open", id: "", data: null }); // what came before it isn't told by it
			const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader();
			let rest = "";
			for (;;) {
				const { done, value } = await reader.read();
				if (done) break;
				clearTimeout(silence);
				silence = setTimeout(end, 20_000);
				const parts = (rest + value).split("\n\n");
				rest = parts.pop()!;
				for (const part of parts) {
					const e: Event = { type: "message", id: "", data: null };
					let data = "";
					for (const line of part.split("\n")) {
						if (line.startsWith("event: ")) e.type = line.slice(7);
						else if (line.startsWith("id: ")) e.id = line.slice(4);
						else if (line.startsWith("data: ")) data += line.slice(6);
					}
					if (e.id) last = e.id;
					if (!data && e.type === "message") continue;
					e.data = data ? JSON.parse(data) : null;
					take(e);
					if (e.type === "deleted" || e.type === "end") return;
				}
			}
			if (!stop.aborted) staleSince.value ||= Date.now();
		} catch (e) {
			if (stop.aborted) return;
			if (e instanceof Refusal && e.code !== "unreachable" && e.status < 500 && e.status !== 429) throw e;
			staleSince.value ||= Date.now();
		} finally {
			clearTimeout(silence);
			stop.removeEventListener("abort", end);
			cut.abort();
		}
		await new Promise((done) => setTimeout(done, wait * (0.75 + Math.random() / 2)));
		wait = Math.min(wait * 2, 4000);
	}
}

/** Tries a token, and keeps it if it counts. */
export async function signIn(text: string): Promise<void> {
	const before = token.value;
	token.value = text;
	try {
		caller.value = await read("/v1/caller");
		localStorage.setItem(kept, text);
		signedOut.value = "";
		describe().catch(() => {}); // all entries stay
		learnNames().catch(() => {}); // ids are shown
	} catch (e) {
		if (token.value === text) token.value = e instanceof Refusal && e.code === "unreachable" ? before : "";
		throw e;
	}
}

/** Trades the code of an address for a token. */
export async function trade(code: string): Promise<void> {
	const r = await send("/v1/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
	await signIn(((await r.json()) as TokenCreated).token!);
}

// another tab signed out
addEventListener("storage", (e) => e.key === kept && !e.newValue && token.value && forget("You signed out in another tab."));

function forget(why: string) {
	token.value = "";
	caller.value = null;
	localStorage.removeItem(kept);
	signedOut.value = why;
}

export async function signOut(): Promise<void> {
	await command("sign_out", {}).catch(() => {});
	forget("");
}
