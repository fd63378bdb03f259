// A session: its views, and the inspector beside them.
import { useState } from "preact/hooks";
import { command, download, read, refused } from "../api";
import { useLive } from "../load";
import { at, go } from "../route";
import { Chat } from "../session/chat";
import { Inspector } from "../session/inspector";
import { Timeline } from "../session/timeline";
import { Changes, Context, Events } from "../session/views";
import type { Item, Session as Row } from "../types";
import { Button, Copy, count, counts, Failed, Icon, money, save, Skeleton, Status, Written } from "../ui";
import { List as Programs } from "./programs";
import { name, standing } from "./sessions";

interface Shell { session: Row; driven: boolean }

const views: [string, string][] = [["", "Chat"], ["timeline", "Timeline"], ["events", "Events"], ["changes", "Changes"], ["context", "Context"], ["programs", "Programs"]];

/** Another view of a session, with the same item in the inspector. */
function view(id: string, tab: string): string {
	const q = new URLSearchParams(tab && { tab });
	for (const k of ["item", "at", "of"]) if (at.value.query.get(k)) q.set(k, at.value.query.get(k)!);
	return `/sessions/${id}${q.size ? "?" + q : ""}`;
}

export function Session({ id }: { id: string }) {
	const tab = at.value.query.get("tab") ?? "", item = at.value.query.get("item") ?? "";
	const { data, error, again } = useLive("session/" + id, (s) => read<Shell>(`/v1/sessions/${id}`, {}, s));
	const [found, set] = useState<Item | undefined>();
	if (error) return <section class="page"><Failed error={error} again={again} /><a class="button" href="/sessions">All sessions</a></section>;
	if (!data) return <section class="page"><Skeleton /></section>;
	const s = data.session;
	const turn = s.threads?.find((t) => !t.depth)?.turn;
	const running = turn?.status === "running" || turn?.status === "waiting";
	const agents = new Set(s.threads?.filter((t) => t.depth).map((t) => t.id)); // agents that it started
	const change = (settings: object) => command("update_thread", { sessionId: id, settings });
	return (
		<section class={"session" + (item ? " inspecting" : "")} aria-label={name(s)}>
			<header>
				<div class="bar">
					<a href="/sessions" aria-label="All sessions"><Icon name="corner-up-left" /></a>
					<h1>{name(s)}</h1>
					<Status {...standing(s)} />
					<span class="muted figures">
						<span>turn {s.counts.turns ?? 0}</span> {s.tokens ? <span>{count(s.tokens)} tokens</span> : null} <span>{money(s.cost) === "unknown" ? "cost unknown" : money(s.cost)}</span>
					</span>
					<span class="grow" />
					<label class="muted wide">model <Written class="short" value={s.model ?? ""} placeholder={s.provider?.split(":")[0]} label="Model" disabled={!!refused("work")} title={refused("work") || s.provider} change={(model) => change({ model })} /></label>
					<label class="muted">mode <select value={s.mode} aria-label="Mode" disabled={!!refused("work")} title={refused("work")} onChange={({ currentTarget: field }) => counts(field, s.mode ?? "", change({ mode: field.value }))}>
						<option value="plan">plan</option><option value="default">ask</option><option value="accept_edits">accept edits</option>
						{s.mode && !["plan", "default", "accept_edits"].includes(s.mode) && <option value={s.mode}>{s.mode}</option>}
					</select></label>
					{running && <Button kind="danger" scope="work" onClick={() => command("interrupt_turn", { sessionId: id })}><Icon name="square" /> Stop</Button>}
				</div>
				<nav class="tabs" aria-label="Views of the session">
					{views.map(([t, label], n) => (
						<button type="button" aria-keyshortcuts={String(n + 1)} aria-current={tab === t ? "page" : undefined} onClick={() => go(view(id, t))}>{label}{t === "changes" && s.files?.length ? " " + s.files.length : ""}</button>
					))}
					<span class="grow" />
					<Copy text={id} what="the session's id" />
					<Button kind="plain" label="Export as a bundle" onClick={async () => save(id + ".belay", [await download(`/v1/sessions/${id}/export`, { format: "bundle" })])}><Icon name="download" /></Button>
					<Button kind="plain" label="Fork: begin another session with this history" scope="work" onClick={async () => go("/sessions/" + (await command<{ sessionId: string }>("fork_session", { sessionId: id })).sessionId)}><Icon name="git-branch" /></Button>
				</nav>
			</header>
			<div class="beside">
				<div class="view">
					{tab === "changes" ? <Changes s={s} /> : tab === "events" ? <Events id={id} /> : tab === "timeline" ? <Timeline id={id} agents={agents} /> : tab === "context" ? <Context s={s} /> : tab === "programs" ? <div class="page"><Programs session={id} /></div>
						: <Chat key={id} id={id} s={s} driven={data.driven && running} running={running} agents={agents} selected={item} shown={set} />}
				</div>
				{item && <Inspector key={item} session={id} item={item} found={found?.kind + "/" + found?.itemId === item ? found : undefined} child={agents.has(found?.threadId ?? "")} />}
			</div>
		</section>
	);
}
