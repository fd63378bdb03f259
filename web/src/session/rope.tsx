// The rope: a line down conversation, timeline and inspector. Each item is a knot on it, whose shape says its kind and
// whose colour says who decided about it; the sign in it says how it went. The line is dashed where no process drove, and
// frayed where something was lost.
import { createElement } from "preact";
import { icons } from "../icons.gen";
import type { Fact, Item } from "../types";
import type { IconName } from "../ui";

export type By = "rule" | "person" | "nobody";

const kinds: { [kind: string]: { icon: IconName; shape: string } } = {
	user_message: { icon: "user", shape: "M12 1a11 11 0 1 0 0 22a11 11 0 1 0 0-22Z" },
	agent_message: { icon: "bot", shape: "M9 1h6a8 8 0 0 1 8 8v6a8 8 0 0 1-8 8H9a8 8 0 0 1-8-8V9a8 8 0 0 1 8-8Z" },
	reasoning: { icon: "message-square", shape: "M7 2h10l6 10-6 10H7L1 12Z" },
	tool_call: { icon: "terminal", shape: "M3 2h18a1 1 0 0 1 1 1v18a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1V3a1 1 0 0 1 1-1Z" },
	question: { icon: "circle-question-mark", shape: "M12 0L24 12 12 24 0 12Z" },
	file_change: { icon: "file-diff", shape: "M4 1h12l5 5v17H4Z" },
	artifact: { icon: "file-diff", shape: "M4 1h12l5 5v17H4Z" },
	plan: { icon: "list", shape: "M1 4h22v16H1Z" },
	notice: { icon: "circle-alert", shape: "M12 1l11 21H1Z" },
	turn_end: { icon: "check", shape: "M2 22V12a10 10 0 0 1 20 0v10Z" },
};

const said = { rule: "decided by a rule", person: "decided by a person", nobody: "nobody decided" };

/** What the knots say, for who sees them for the first time. */
export const legend: [By, string][] = [["rule", "a rule"], ["person", "a person"], ["nobody", "nobody"]];

/** How an item went. */
export function tone(i: Pick<Item, "kind" | "state" | "status">): string {
	const word = i.status ?? "";
	if (i.kind === "question" && i.state !== "completed") return "person";
	if (/lost/.test(word)) return "lost";
	if (i.kind === "tool_call" && i.state === "completed" ? !/completed|cancelled/.test(word) : /fail|error|denied|timed_out|refused|budget/.test(word)) return "failed";
	if (i.state !== "completed") return "running";
	return i.kind === "turn_end" && word === "completed" ? "ok" : "";
}

/** Who decided about an item: a change is of its call, a message of whoever wrote it. agents are the threads of agents that it started, to whom agents write. */
export function decider(i: Item, calls: Map<string, Item>, agents: Set<string>): By {
	switch (i.kind) {
		case "user_message":
			return agents.has(i.threadId ?? "") ? "nobody" : "person";
		case "question":
			return i.state !== "completed" || i.detail !== "by deadline" ? "person" : "nobody";
		default:
			return (i.kind === "tool_call" ? i : calls.get(i.toolCallId ?? ""))?.decided ?? "nobody";
	}
}

/** What a fact is, as a knot. */
export function knotOf(type: string): { kind: string; by: By } {
	const family = type.slice(0, type.indexOf("."));
	const kind = type === "turn.submitted" || type === "turn.steered" ? "user_message" : /^turn\.(completed|failed)/.test(type) ? "turn_end"
		: { model: "agent_message", reasoning: "reasoning", tool: "tool_call", process: "tool_call", permission: "tool_call", action: "question", artifact: "file_change" }[family] ?? "notice";
	return { kind, by: family === "permission" ? "rule" : family === "action" || kind === "user_message" ? "person" : "nobody" };
}

/** Who decided about a call, by its facts. */
export function decidedBy(facts: Fact[]): By {
	let by: By = "nobody";
	for (const { type, payload: p } of facts) {
		if (type === "permission.evaluated" && p.decision !== "ask") by = p.source === "person" ? "person" : "rule";
		if (type === "permission.resolved" || type === "action.resolved") by = p.by === "deadline" ? "nobody" : "person";
	}
	return by;
}

/** A knot. */
export function Knot({ kind, by, tone = "", ...place }: { kind: string; by: By; tone?: string; x?: number; y?: number; width?: number; height?: number }) {
	const k = kinds[kind] ?? kinds.notice!;
	const icon = tone === "failed" ? "x" : tone === "lost" ? "unplug" : k.icon;
	return (
		<svg class="tie" viewBox="-1 -1 26 26" width="24" height="24" {...place} aria-hidden="true">
			<path class={"shape by-" + by} d={k.shape} />
			<svg class={"icon " + tone} x="5" y={kind === "notice" || kind === "turn_end" ? 8 : 5} width="14" height="14" viewBox="0 0 24 24">{icons[icon].map(([tag, attributes]) => createElement(tag as string, attributes as object))}</svg>
		</svg>
	);
}

/** What a knot says, in words. */
export const tells = (kind: string, by: By, word = "") => [kind.replace("_", " "), said[by], word].filter(Boolean).join(", ");
