// The part of a session's story that is on screen, kept up by its stream. There is no DOM here.
import { read, Refusal } from "./api";
import { listen } from "./live";
import type { Item, Page } from "./types";

/** How many items are kept. */
export const most = 400;
const page = 200;

export const keyOf = (i: Item) => i.kind + "/" + (i.threadId ?? "") + "/" + i.itemId;

/** Whether an item has anything to say: an open question has its answers, and a step that only calls has its calls. */
export const shows = (i: Item) => !(i.kind === "question" && i.state !== "completed" || i.kind === "agent_message" && i.state === "completed" && i.status === "completed" && !i.text && !i.detail);

/** Puts items of a window behind those there are; what began before is completed where it stands. */
export function merge(items: Item[], more: Item[]): Item[] {
	const out = [...items], at = new Map(items.map((i, n) => [keyOf(i), n]));
	for (const i of more) {
		const n = at.get(keyOf(i));
		if (n === undefined) {
			at.set(keyOf(i), out.push(i) - 1);
			continue;
		}
		const old = out[n]!;
		out[n] = { ...old, ...i, startedAt: old.startedAt ?? i.startedAt, firstEventId: old.firstEventId, position: old.position, begunBefore: old.begunBefore };
	}
	return out;
}

export interface Flow {
	text: string;
	reasoning: string;
	step: string;
	bytes: { [kind: string]: number }; // that it has of each
}

export class Story {
	items: Item[] = [];
	flows = new Map<string, Flow>(); // of a thread: what its model says now
	outputs = new Map<string, string>(); // of a call: the end of what it prints
	moreOlder = false;
	detached = false; // newer items are left out
	reading = false; // what is shown stays where it is: nothing falls off its beginning
	unseen = 0; // items that came while reading
	loaded = false;
	gone = false;
	error: Refusal | null = null;
	private newer = ""; // of all that is known, also where newer items are left out
	private wanted = false;
	private busy = false;
	private timer = 0;
	private stop = new AbortController();
	private deaf = () => {};

	constructor(readonly session: string, private changed: () => void) {}

	/** Begins with the newest window, or with the one that begins at a position. */
	async start(at = 0): Promise<void> {
		try {
			await (at ? this.around(at) : this.latest());
		} catch (e) {
			if (e instanceof Refusal) this.error = e;
			this.changed();
			return;
		}
		this.deaf();
		this.deaf = listen(`/v1/sessions/${this.session}/stream`, (e) => this.take(e.type, e.data));
	}

	end(): void {
		this.stop.abort();
		this.deaf();
		clearTimeout(this.timer);
	}

	/** Shows the newest window. */
	async latest(): Promise<void> {
		const p = await this.get({ last: page });
		Object.assign(this, { items: p.items ?? [], newer: p.newer, moreOlder: p.moreOlder, detached: false, unseen: 0, loaded: true, error: null });
		this.changed();
	}

	/** Shows what is at a position and behind it. */
	async around(at: number): Promise<void> {
		const [p, end] = await Promise.all([this.get({ behind: String(at - 1), limit: page }), this.get({ last: 1 })]);
		Object.assign(this, { items: p.items ?? [], newer: p.moreNewer ? end.newer : p.newer, moreOlder: true, detached: p.moreNewer, unseen: 0, loaded: true, error: null });
		await this.earlier();
	}

	/** Adds the window before. What doesn't fit falls off at the other end. */
	async earlier(): Promise<void> {
		const first = this.items.find((i) => i.position)?.position;
		if (!this.moreOlder || !first) return;
		const p = await this.get({ before: String(first), limit: page });
		const all = merge(p.items ?? [], this.items);
		this.detached ||= all.length > most;
		Object.assign(this, { items: all.slice(0, most), moreOlder: p.moreOlder });
		this.changed();
	}

	/** Adds the window behind. What doesn't fit falls off at the beginning. */
	async later(): Promise<void> {
		const last = this.items.findLast((i) => i.position)?.position;
		if (!this.detached || !last) return;
		const p = await this.get({ behind: String(last), limit: page });
		this.items = merge(this.items, p.items ?? []);
		this.trim();
		if (!p.moreNewer) Object.assign(this, { detached: false, newer: p.newer });
		this.changed();
	}

	private get(query: Record<string, string | number>): Promise<Page> {
		return read<Page>(`/v1/sessions/${this.session}/story`, query, this.stop.signal);
	}

	private take(type: string, data: any): void {
		if (type === "text") this.flow(data);
		else if (type === "output") this.outputs.set(data.toolCallId, ((this.outputs.get(data.toolCallId) ?? "") + data.text).slice(-4000));
		else if (type === "deleted") this.gone = true;
		else if (type === "failed") this.error = new Refusal(data.status, data.code, data.message);
		else if (type === "resync") {
			this.latest().catch(() => {});
			return;
		} else {
			this.soon();
			return;
		}
		this.paint();
	}

	private flow(d: { threadId: string; stepId: string; attempt: number; kind: string; offset: number; text: string }): void {
		const step = d.stepId + "/" + d.attempt;
		let f = this.flows.get(d.threadId);
		if (f?.step !== step) this.flows.set(d.threadId, (f = { step, text: "", reasoning: "", bytes: {} }));
		const raw = new TextEncoder().encode(d.text), have = f.bytes[d.kind] ?? 0;
		if (d.offset + raw.length <= have) return; // a stream that is opened again begins with what was said
		const fresh = d.offset >= have ? d.text : new TextDecoder().decode(raw.subarray(have - d.offset));
		f.bytes[d.kind] = d.offset + raw.length;
		if (d.kind === "reasoning") f.reasoning += fresh;
		else f.text += fresh;
	}

	/** Drops what is far back. */
	private trim(): void {
		if (this.items.length <= most) return;
		const from = this.items.findIndex((i, n) => n >= this.items.length - most && i.position);
		if (from <= 0) return;
		this.items = this.items.slice(from);
		this.moreOlder = true;
	}

	// at most ten paints a second
	private paint(): void {
		this.timer ||= setTimeout(() => ((this.timer = 0), this.changed()), 100);
	}

	private async soon(): Promise<void> {
		this.wanted = true;
		if (this.busy) return;
		this.busy = true;
		while (this.wanted && !this.stop.signal.aborted) {
			this.wanted = false;
			try {
				const p = await this.get({ behind: this.newer, limit: 1000 }), known = new Set(this.items.map(keyOf));
				this.newer = p.newer;
				if (this.reading || this.detached) this.unseen += p.items?.filter((i) => shows(i) && (i.kind === "agent_message" ? i.state === "completed" : !i.begunBefore && !known.has(keyOf(i)))).length ?? 0;
				// where newer items are left out, those that are shown still go on
				const all = merge(this.items, this.detached ? p.items?.filter((i) => known.has(keyOf(i))) ?? [] : p.items ?? []);
				// a step that has ended has its text as an item
				for (const [thread, f] of this.flows) if (all.some((i) => i.stepId === f.step.split("/")[0] && i.kind === "agent_message" && i.state === "completed")) this.flows.delete(thread);
				for (const call of this.outputs.keys()) if (all.some((i) => i.toolCallId === call && i.kind === "tool_call" && i.state === "completed")) this.outputs.delete(call);
				this.items = all;
				if (this.reading && all.length > most) Object.assign(this, { items: all.slice(0, most), detached: true });
				this.trim();
				this.changed();
				this.wanted ||= p.moreNewer;
			} catch (e) {
				if (e instanceof Refusal && e.code === "bad_cursor") await this.latest().catch(() => {});
			}
			await new Promise((done) => setTimeout(done, 100));
		}
		this.busy = false;
	}
}
