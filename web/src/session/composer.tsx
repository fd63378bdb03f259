// What to say next, and what waits to be said.
import { useRef, useState } from "preact/hooks";
import { command, newID, read, refused } from "../api";
import type { SubmitTurn, ThreadShown } from "../api.gen";
import { useLive } from "../load";
import type { Page } from "../types";
import { Button, Icon, say, visible } from "../ui";
import { whole } from "./views";

export function Composer({ id, running, waiting }: { id: string; running: boolean; waiting: number }) {
	const kept = "belay.draft." + id;
	const [text, setText] = useState(sessionStorage.getItem(kept) ?? ""), [how, setHow] = useState("");
	const key = useRef({ text: "", key: "" });
	const queued = useLive(`queue/${id}/${waiting > 0}`, () => (waiting ? command<ThreadShown>("get_thread_read", { sessionId: id }) : Promise.resolve(null)), (type) => type.startsWith("queue.") || type.startsWith("turn.")).data?.queuedTurns ?? [];
	const field = useRef<HTMLTextAreaElement>(null), what = (t: { text?: string; turnId: string }) => visible((t.text ?? "").slice(0, 200)) || t.turnId.slice(-8);
	const write = (v: string) => {
		setText(v);
		v ? sessionStorage.setItem(kept, v) : sessionStorage.removeItem(kept);
	};
	const send = async () => {
		if (!text.trim() || refused("work")) return;
		if (key.current.text !== text) key.current = { text, key: newID() }; // sent again it is the same
		await command("submit_turn", { sessionId: id, text, ...(running && how && { queue: how }) } satisfies SubmitTurn, key.current.key);
		key.current = { text: "", key: "" };
		write("");
	};
	// the queue shows a first line; the fact has all of it
	const edit = async (turn: string) => {
		const p = await read<Page>(`/v1/sessions/${id}/events`, { about: turn, types: "turn.submitted", last: 1 }), said = p.events?.[0]?.payload.text;
		const all = said?.ref ? await whole(id, said.ref.digest) : said?.text;
		if (typeof all !== "string" || said.attached?.length) throw new Error("It can't be written anew here: it has files, or is too long. It still waits.");
		await command("remove_queued_turn", { sessionId: id, queuedTurnId: turn });
		write([all, field.current?.value].filter((x) => x?.trim()).join("\n\n"));
		field.current?.focus();
		field.current?.setSelectionRange(all.length, all.length);
	};
	return (
		<form class="composer" onSubmit={(e) => e.preventDefault()}>
			{queued.map((t, n) => (
				<p class="queued" key={t.turnId}><Icon name="hourglass" /> <span class="muted">{n + 1}.</span> <span class="what">{what(t)}</span>
					<Button kind="plain" scope="work" label={"Edit: " + what(t)} title="Take it out and write it anew; what you were writing stays below it" onClick={() => edit(t.turnId)}><Icon name="pencil" /></Button>
					{n > 0 && <Button kind="plain" scope="work" label={"Next: " + what(t)} onClick={() => command("promote_queued_turn", { sessionId: id, queuedTurnId: t.turnId })}>Next</Button>}
					<Button kind="plain" scope="work" label={"Drop: " + what(t)} onClick={() => command("remove_queued_turn", { sessionId: id, queuedTurnId: t.turnId })}>Drop</Button>
				</p>
			))}
			<div class="say">
				<textarea ref={field} rows={2} value={text} placeholder={running ? "Say more to what runs…" : "What next?"} aria-label="Message" onInput={(e) => write(e.currentTarget.value)}
					onKeyDown={(e) => {
						if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
							e.preventDefault();
							send().catch(say);
						}
					}} />
				{running && (
					<select value={how} aria-label="What becomes of it" onChange={(e) => setHow(e.currentTarget.value)}>
						<option value="">as set</option><option value="steer">steer</option><option value="enqueue">queue</option><option value="interrupt">interrupt</option>
					</select>
				)}
				<Button kind="primary" scope="work" disabled={text.trim() ? "" : "Write something first."} onClick={send}><Icon name="send" /> Send</Button>
			</div>
		</form>
	);
}
