// The part of a session's story that is on screen, kept up by its stream. There is no DOM here.
import { follow, read, Refusal } from "./api";
import type { Item, Page } from "./types";

/** How many items are kept. */
export const most = 400;
const page = 200;

const keyOf = (i: Item) => i.kind + "/" + (i.threadId ?? "") + "/" + i.itemId;

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
		out[n] = { ...old, ...i, startedAt: old.startedAt ?? i.startedAt, firstEventId: old.firstEventId, begunBefore: old.begunBefore };
	}
	return out;
}

export interface Flow {
	text: string;
	reasoning: string;
	step: string;
}

export class Story {
	items: Item[] = [];
	flows = new Map<string, Flow>(); // of a thread: what its model says now
	outputs = new Map<string, string>(); // of a call: the end of what it prints
	moreOlder = false;
	detached = false; // newer items are left out
	unseen = 0; // newer facts that are left out
	loaded = false;
	gone = false;
	error: Refusal | null = null;
	private marks: { at: string; older: string }[] = []; // where windows begin, and the cursor of what is before
	private older = "";
	private newer = "";
	private wanted = false;
	private busy = false;
	private timer = 0;
	private stop = new AbortController();

	constructor(readonly session: string, private changed: () => void) {}

	async start(): Promise<void> {
		try {
			await this.latest();
		} catch (e) {
			if (e instanceof Refusal) this.error = e;
			this.changed();
			return;
		}
		follow(`/v1/sessions/${this.session}/stream`, { since: this.newer }, (e) => this.take(e.type, e.data), this.stop.signal).catch((e) => {
			if (e instanceof Refusal) this.error = e;
			this.changed();
		});
	}

	end(): void {
		this.stop.abort();
		clearTimeout(this.timer);
	}

	/** Shows the newest window. */
	async latest(): Promise<void> {
		const p = await this.get({ last: page });
		Object.assign(this, { items: p.items ?? [], older: p.older, newer: p.newer, moreOlder: p.moreOlder, marks: [], detached: false, unseen: 0, loaded: true, error: null });
		this.changed();
	}

	/** Adds the window before. What doesn't fit falls off at the other end. */
	async earlier(): Promise<void> {
		if (!this.moreOlder) return;
		const p = await this.get({ before: this.older, limit: page });
		const all = merge(p.items ?? [], this.items);
		this.detached ||= all.length > most;
		Object.assign(this, { items: all.slice(0, most), older: p.older, moreOlder: p.moreOlder });
		this.changed();
	}

	private get(query: Record<string, string | number>): Promise<Page> {
		return read<Page>(`/v1/sessions/${this.session}/story`, query, this.stop.signal);
	}

	private take(type: string, data: any): void {
		if (type === "text") this.flow(data);
		else if (type === "output") this.outputs.set(data.toolCallId, ((this.outputs.get(data.toolCallId) ?? "") + data.text).slice(-4000));
		else if (type === "deleted") this.gone = true;
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
		if (f?.step !== step) this.flows.set(d.threadId, (f = { step, text: "", reasoning: "" }));
		if (d.kind === "reasoning") f.reasoning += d.text;
		else f.text += d.text;
	}

	/** Drops what is far back, up to where a window began: from there its cursor leads back. */
	private trim(): void {
		if (this.items.length <= most) return;
		const at = new Map(this.items.map((i, n) => [keyOf(i), n]));
		const mark = this.marks.find((m) => at.get(m.at)! >= this.items.length - most);
		if (!mark) return;
		this.items = this.items.slice(at.get(mark.at));
		this.older = mark.older;
		this.moreOlder = true;
		this.marks = this.marks.slice(this.marks.indexOf(mark) + 1);
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
			if (this.detached) {
				this.unseen++;
				this.paint();
				continue;
			}
			try {
				const p = await this.get({ behind: this.newer, limit: 1000 });
				this.newer = p.newer;
				const all = merge(this.items, p.items ?? []);
				if (all.length > this.items.length) this.marks.push({ at: keyOf(all[this.items.length]!), older: p.older });
				// a step that has ended has its text as an item
				for (const [thread, f] of this.flows) if (all.some((i) => i.stepId === f.step.split("/")[0] && i.kind === "agent_message" && i.state === "completed")) this.flows.delete(thread);
				for (const call of this.outputs.keys()) if (all.some((i) => i.toolCallId === call && i.kind === "tool_call" && i.state === "completed")) this.outputs.delete(call);
				this.items = all;
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
