// What a screen reader says by itself: at most a line every five seconds, and at once only that a question waits.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Action } from "./api.gen";
import { hear } from "./load";
import { prefs } from "./prefs";
import { go } from "./route";

const apart = 5000, most = 3; // milliseconds between lines, texts in one

const line = signal("");
let texts: string[] = [], ended = 0, last = 0, timer = 0;

/** Says a text in its turn. */
export function speak(text: string): void {
	texts = [...texts.filter((t) => t !== text), text].slice(-most);
	soon();
}

function soon(): void {
	timer ||= setTimeout(() => {
		const all = (ended ? [ended === 1 ? "A turn ended." : ended + " turns ended."] : []).concat(texts).join(" ");
		line.value = all === line.value ? all + "\u00a0" : all; // said again
		[texts, ended, last, timer] = [[], 0, Date.now(), 0];
	}, Math.max(100, last + apart - Date.now()));
}

/** The only places that a screen reader reads out when they change; and what tells a person elsewhere of a question, if they want it. */
export function Spoken({ waiting }: { waiting: Action[] }) {
	const known = useRef<Set<string> | null>(null);
	const [question, set] = useState("");
	const ids = waiting.map((a) => a.actionId).join();
	useEffect(() => hear((type) => (type === "turn.completed" || type === "turn.failed") && (ended++, soon())), []);
	useEffect(() => {
		const fresh = known.current ? waiting.filter((a) => !known.current!.has(a.actionId)) : [];
		known.current = new Set(waiting.map((a) => a.actionId));
		if (!fresh.length) return set("");
		set(`${waiting.length} ${waiting.length === 1 ? "question waits" : "questions wait"} for you.`);
		if (!prefs.value.notify || !document.hidden || !("Notification" in window)) return;
		const first = fresh[0]!;
		const n = new Notification("Belay: a question waits", { body: first.prompt?.slice(0, 120) ?? first.tool ?? "", tag: first.actionId });
		n.onclick = () => {
			focus();
			go("/approvals/" + first.actionId);
			n.close();
		};
	}, [ids]);
	return (
		<>
			<div class="spoken" role="status">{line.value}</div>
			<div class="spoken" role="alert">{question}</div>
		</>
	);
}
