// What the address says. State that a link should show again is in it.
import { signal } from "@preact/signals";

const here = () => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export const at = signal(here());

addEventListener("popstate", () => (at.value = here()));

export function go(to: string, replace = false): void {
	if (to === location.pathname + location.search) return;
	history[replace ? "replaceState" : "pushState"](null, "", to);
	at.value = here();
}

/** Changes what the address says behind the question mark; an empty value takes it away. */
export function ask(change: Record<string, string>): void {
	const q = new URLSearchParams(location.search);
	for (const [name, v] of Object.entries(change)) v ? q.set(name, v) : q.delete(name);
	go(location.pathname + (q.size ? "?" + q : ""), true);
}

/** What the address says under a name, if it is one of these. */
export function among<T extends string>(name: string, of: Record<T, unknown>): T | "" {
	const v = at.value.query.get(name) ?? "";
	return Object.hasOwn(of, v) ? (v as T) : "";
}

/** The place in a list that the address says; the server says of one that is none that it is none. */
export const before = () => (at.value.query.has("before") ? Number(at.value.query.get("before")) : undefined);

/** Follows links of this page without loading it again. */
export function onLink(e: MouseEvent): void {
	const a = (e.target as Element).closest?.("a");
	if (!a || a.target || a.origin !== location.origin || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || a.hasAttribute("download")) return;
	e.preventDefault();
	go(a.pathname + a.search);
}
