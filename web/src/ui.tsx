// Small parts that pages are made of.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Component, createElement } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { names, Refusal, refused, unexpected } from "./api";
import { icons } from "./icons.gen";
import { moment } from "./prefs";
import { speak } from "./spoken";

export { clock } from "./prefs";

export type IconName = keyof typeof icons;

export function Icon({ name }: { name: IconName }) {
	return (
		<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
			{icons[name].map(([tag, attributes]) => createElement(tag as string, attributes as object))}
		</svg>
	);
}

// What makes a text look like another one is shown as what it is.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** A text of a model, a tool or a person: what can't be seen in it is written out. */
export function visible(text: string): string {
	return text.replace(unseen, (c) => (c === "\r" ? "" : `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`));
}

/** A text that says who did something: tokens by their names. */
export function person(text: string): string {
	return visible(text.replace(/token:(tok_[0-9a-f-]+)/g, (_, id) => names.value.get(id) ?? "token …" + id.slice(-6)));
}

/** A call in a few words, by its arguments. */
export function words(args: unknown): string {
	if (!args || typeof args !== "object") return "";
	const a = args as Record<string, unknown>, one = a.command ?? a.path ?? a.query ?? a.url ?? a.question ?? a.summary;
	if (typeof one === "string") return one;
	return Object.entries(a).map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`).join(", ");
}

export type Tone = "running" | "waiting" | "ok" | "failed" | "lost" | "muted";

const marks: Record<Tone, IconName> = { running: "circle-dot", waiting: "circle-alert", ok: "circle-check", failed: "circle-x", lost: "unplug", muted: "clock" };

export function Status({ tone, word }: { tone: Tone; word: string }) {
	return (
		<span class={"status " + tone}>
			<Icon name={marks[tone]} />
			<span>{word}</span>
		</span>
	);
}

/** The time, ticking for who shows ages. */
export const now = signal(Date.now());
setInterval(() => !document.hidden && (now.value = Date.now()), 1000);

export function length(ms: number): string {
	const s = Math.max(0, Math.round(ms / 1000));
	if (s < 60) return s + " s";
	if (s < 3600) return Math.floor(s / 60) + " min";
	if (s < 172800) return Math.floor(s / 3600) + " h";
	return Math.floor(s / 86400) + " d";
}

export function Ago({ time }: { time?: string }) {
	if (!time) return null;
	return (
		<time dateTime={time} title={moment(time)}>
			{length(now.value - Date.parse(time))}
		</time>
	);
}

export function money(cost?: { microUsd?: number; priced?: number; unpriced?: number }): string {
	if (!cost || (!cost.priced && !cost.unpriced)) return "–";
	if (!cost.priced) return "unknown";
	const usd = (cost.microUsd ?? 0) / 1e6;
	return "$" + usd.toFixed(usd < 1 ? 3 : 2) + (cost.unpriced ? " +?" : "");
}

export function count(n?: number): string {
	if (!n) return "–";
	if (n < 1000) return String(n);
	return n < 1e6 ? (n / 1000).toFixed(n < 1e4 ? 1 : 0) + "k" : (n / 1e6).toFixed(1) + "M";
}

/** A button. One that can't be used says why. */
export function Button(p: { children: ComponentChildren; onClick: () => unknown; kind?: "primary" | "danger" | "plain"; scope?: string; disabled?: string; label?: string; title?: string; keys?: string }) {
	const [busy, set] = useState(false);
	const why = p.scope && refused(p.scope) || p.disabled || "";
	const alive = useRef(true);
	useEffect(() => () => void (alive.current = false), []);
	return (
		<button
			type="button" class={"button " + (p.kind ?? "")} aria-disabled={!!why || busy} aria-label={p.label} title={why || (busy ? "It is under way." : p.title || p.label)} aria-keyshortcuts={p.keys}
			onClick={async () => {
				if (why || busy) return;
				set(true);
				try {
					await p.onClick();
				} catch (e) {
					say(e);
				}
				if (alive.current) set(false);
			}}
		>
			{p.children}
			{p.keys && <kbd aria-hidden="true">{p.keys}</kbd>}
		</button>
	);
}

/** What is told at the bottom for a while. */
export const told = signal<{ text: string; hint?: string; bad?: boolean } | null>(null);

export function say(what: unknown): void {
	if (what instanceof Refusal) told.value = { text: what.message, hint: what.hint, bad: true };
	else if (what instanceof Error) told.value = { text: what.message, bad: true };
	else told.value = { text: String(what) };
	speak(told.value.text);
}

export function Told() {
	const t = told.value;
	useEffect(() => {
		if (!t) return;
		if (t.bad && document.querySelector("dialog[open]")) return; // who fills it in reads it first
		const timer = setTimeout(() => told.value === t && (told.value = null), t.bad ? 12000 : 4000);
		return () => clearTimeout(timer);
	}, [t]);
	return (
		<div class="told">
			{t && (
				<p class={t.bad ? "bad" : ""}>
					{visible(t.text)} {t.hint && <span class="muted">{visible(t.hint)}</span>}
					<button type="button" class="button plain" aria-label="Close" onClick={() => (told.value = null)}>
						<Icon name="x" />
					</button>
				</p>
			)}
		</div>
	);
}

/** Copies a text. On plain HTTP in a network browsers have no clipboard for pages, but still the old command. */
export async function copy(text: string, what: string): Promise<void> {
	const clipboard = navigator.clipboard as Clipboard | undefined;
	if (clipboard) await clipboard.writeText(text);
	else {
		const box = Object.assign(document.createElement("textarea"), { value: text, className: "spoken" }), had = document.activeElement as HTMLElement;
		(had.closest("dialog") ?? document.body).append(box);
		box.select();
		document.execCommand("copy");
		box.remove();
		had.focus();
	}
	say("Copied " + what + ".");
}

export function Copy({ text, what, children }: { text: string; what: string; children?: ComponentChildren }) {
	return (
		<Button kind="plain" {...(children ? { title: "Copy " + what } : { label: "Copy " + what })} onClick={() => copy(text, what)}>
			<Icon name="copy" />{children}
		</Button>
	);
}

export const bytes = (n?: number) => (!n ? "–" : n < 1024 ? n + " B" : n < 1048576 ? (n / 1024).toFixed(0) + " KB" : n < 1073741824 ? (n / 1048576).toFixed(1) + " MB" : (n / 1073741824).toFixed(1) + " GB");

/** Figures as a line; a table of them is beside it. */
export function Spark({ of, label }: { of: number[]; label: string }) {
	const most = Math.max(...of, 1e-9), step = 120 / Math.max(1, of.length - 1);
	return <svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" role="img" aria-label={label}><polyline points={of.map((n, i) => `${(i * step).toFixed(1)},${(23 - (n / most) * 22).toFixed(1)}`).join(" ")} /></svg>;
}

/** A field that is read when a person is done with it. What they write isn't taken by what comes meanwhile; what is refused isn't shown as if it counted. */
export function Written({ value, change, ...rest }: { value: string; change: (v: string) => unknown; id?: string; class?: string; type?: "search"; placeholder?: string; title?: string; label: string; disabled?: boolean }) {
	const ref = useRef<HTMLInputElement>(null), { label, ...others } = rest;
	useEffect(() => {
		if (document.activeElement !== ref.current) ref.current!.value = value;
	}, [value]);
	return <input {...(others as object)} ref={ref} aria-label={label} defaultValue={value} onChange={({ currentTarget: field }) => counts(field, value, change(field.value.trim()))} />;
}

/** Shows what counts in a field, if what was chosen there is refused. */
export const counts = (field: HTMLInputElement | HTMLSelectElement, value: string, done: unknown) => Promise.resolve(done).catch((no) => {
	field.value = value;
	say(no);
});

/** Chips of which one is chosen. */
export function Chips({ of, chosen, choose, label }: { of: [string, string][]; chosen: string; choose: (v: string) => void; label: string }) {
	return <div class="chips" role="group" aria-label={label}>{of.map(([v, text]) => <button type="button" class="chip" aria-pressed={chosen === v} onClick={() => choose(v)}>{text}</button>)}</div>;
}

/** Keeps a text as a file. */
export function save(name: string, parts: BlobPart[], type = "text/plain"): void {
	const a = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob(parts, { type })), download: name });
	a.click();
	URL.revokeObjectURL(a.href);
}

/** What a list is called. How many rows it has is told of any list; it is of how many, where not all are shown. */
export const counted = (label: string, shown: number, all: number) => (all > shown ? `${label}: ${shown} of ${all}` : label);

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
	return (
		<div class="empty">
			<p>{title}</p>
			{children}
		</div>
	);
}

export function Failed({ error, again }: { error: Refusal; again: () => void }) {
	useEffect(() => speak(error.message), [error.message]);
	return (
		<div class="empty">
			<p>{visible(error.message)}</p>
			{error.hint && <p class="muted">{visible(error.hint)}</p>}
			<Button onClick={again}>Try again</Button>
		</div>
	);
}

export function Skeleton({ rows = 6 }: { rows?: number }) {
	return (
		<div class="skeleton" role="group" aria-busy="true" aria-label="Loading">
			{Array.from({ length: rows }, () => <div />)}
		</div>
	);
}

/** Shows what went wrong in a part of the page, in its place. Something else, with another key, is shown again. */
export class Fence extends Component<{ children: ComponentChildren }, { error?: unknown }> {
	static override getDerivedStateFromError(error: unknown) {
		return { error };
	}
	render() {
		return this.state.error ? <section class="page"><Failed error={unexpected(this.state.error)} again={() => this.setState({ error: undefined })} /></section> : this.props.children;
	}
}

/** A dialog. The Escape key closes it, and what had the focus has it again. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
	const ref = useRef<HTMLDialogElement>(null), gone = useRef(false), had = useState(() => document.activeElement as HTMLElement)[0];
	useEffect(() => {
		const d = ref.current!;
		d.showModal();
		d.querySelector<HTMLElement>("textarea, input:not([type=checkbox]), select")?.focus();
		return () => {
			gone.current = true;
			setTimeout(() => had.isConnected && document.activeElement === document.body && had.focus()); // when the dialog has left the page
		};
	}, []);
	return (
		<dialog ref={ref} aria-label={title} onClose={() => gone.current || close()} onClick={(e) => e.target === ref.current && ref.current!.close()}>
			<header>
				<h2>{title}</h2>
				<Button kind="plain" label="Close" onClick={() => ref.current!.close()}>
					<Icon name="x" />
				</Button>
			</header>
			{children}
			<Told />
		</dialog>
	);
}
