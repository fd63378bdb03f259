// Everything without a mouse: letters, and the palette of pages, sessions and commands.
import { useEffect, useRef, useState } from "preact/hooks";
import { read, signOut } from "./api";
import { places } from "./pages";
import { prefer, prefs } from "./prefs";
import { ask, at, go } from "./route";
import { copy, Dialog, Icon, say, visible, type IconName } from "./ui";
import { answerable, early } from "./watched";

const keys: [string, string][] = [["Ctrl K", "pages, sessions, commands"], ["?", "this list"], ["/", "search"], ["j k", "next, previous"], ["Enter", "open"], ["Esc", "close"], ["n", "next failure"], ["y", "copy the id"],
	["a s d", "of a question: allow once, allow for the session, deny"], ["e", "change the call"], ["w", "why it is asked"], ["1 … 6", "views of a session"]];

export function Help({ close }: { close: () => void }) {
	return (
		<Dialog title="Keys" close={close}>
			<dl class="keys">{[...keys, ...places.value.map((p): [string, string] => ["g " + p.key, p.title])].map(([k, what]) => <div><dt><kbd>{k}</kbd></dt><dd>{what}</dd></div>)}</dl>
			<label class="check"><input type="checkbox" checked={prefs.value.letters} onChange={(e) => prefer({ letters: e.currentTarget.checked })} /> Single letters are commands</label>
		</Dialog>
	);
}

/** Moves the focus among the rows of the page. */
function step(by: number, only = "") {
	const rows = [...document.querySelectorAll<HTMLElement>(`#page .rows ${only} a.main, #page .rope ${only} button.call, #page .rope ${only} article`)].filter((r) => r.offsetParent);
	const on = rows.findIndex((r) => r.contains(document.activeElement)), i = on < 0 ? rows.findIndex((r) => r.matches("[aria-current=true]")) : on;
	rows[Math.min(rows.length - 1, Math.max(0, i + by))]?.focus();
}

/** The next thing that went wrong, behind what has the focus; from the end on the first. */
function nextFailure() {
	const all = [...document.querySelectorAll<HTMLElement>("#page .row:has(.status.failed, .status.lost), #page .item:has(.knot.failed, .knot.lost)")];
	const behind = all.find((x) => document.activeElement!.compareDocumentPosition(x) & Node.DOCUMENT_POSITION_FOLLOWING && !x.contains(document.activeElement));
	const to = behind ?? all[0];
	if (!to) return say("Nothing failed here.");
	const inside = to.querySelector<HTMLElement>("a, button");
	(inside ?? to).focus();
	to.scrollIntoView({ block: "center" });
}

function copyID() {
	const id = at.value.query.get("item")?.split("/").slice(1).join("/") || at.value.path.split("/")[2] || document.activeElement?.closest("a.main")?.getAttribute("href")?.split("/")[2]?.split("?")[0];
	if (id) copy(decodeURIComponent(id), id).catch(say);
}

/** The button that a letter stands for: of a question only if that is the one that is read. */
function pressed(e: KeyboardEvent): void {
	const all = [...document.querySelectorAll<HTMLElement>(`#page [aria-keyshortcuts="${CSS.escape(e.key)}"]`)], of = (b: Element) => b.closest("article.question");
	const button = all.find((b) => !of(b)?.contains(document.activeElement) === !of(b));
	const q = button && of(button);
	if (!button) return all.length ? say("Letters answer the question that has the focus: Tab or j leads to it.") : undefined;
	if (!q || answerable(q, e.timeStamp)) return button.click();
	early(q);
	say("Letters answer a question when all of it was on the screen for a second.");
}

export function useKeys(help: () => void, palette: () => void) {
	useEffect(() => {
		let after = "";
		const on = (e: KeyboardEvent) => {
			const in_ = e.target as HTMLElement;
			if (e.repeat && in_.closest("article.question :is(a, button)")) return e.preventDefault(); // a key that is held answers once
			if ((e.ctrlKey || e.metaKey) && e.key === "k" && !document.querySelector("dialog[open]")) {
				e.preventDefault();
				palette();
				return;
			}
			if (e.key === "Escape" && !document.querySelector("dialog[open]") && at.value.query.get("item")) {
				ask({ item: "", of: "" });
				return;
			}
			if (e.ctrlKey || e.metaKey || e.altKey || !prefs.value.letters || in_.closest("input, textarea, select, dialog[open]")) return;
			if (e.repeat && e.key !== "j" && e.key !== "k") return;
			const was = after;
			after = e.key === "g" ? "g" : "";
			const to = was === "g" && places.value.find((p) => p.key === e.key);
			if (to) go(to.path);
			else if (e.key === "?") help();
			else if (e.key === "/") (field => field ? field.focus() : palette())(document.querySelector<HTMLElement>("#page input[type=search]"));
			else if (e.key === "j" || e.key === "k") step(e.key === "j" ? 1 : -1);
			else if (e.key === "n") nextFailure();
			else if (e.key === "y") copyID();
			else if (!document.querySelector(`#page [aria-keyshortcuts="${CSS.escape(e.key)}"]`)) return;
			else pressed(e);
			e.preventDefault();
		};
		addEventListener("keydown", on);
		return () => removeEventListener("keydown", on);
	}, []);
}

interface Choice { icon: IconName; text: string; sub?: string; do: () => void }

/** What can be pressed at the top of the page that is shown. */
const here = (): Choice[] => [...document.querySelectorAll<HTMLElement>("#page header :is(.button, .tabs > button):not([aria-disabled=true], [aria-current])")].map((b) => (
	{ icon: "chevron-right", text: b.getAttribute("aria-label") || [...b.childNodes].map((n) => n.nodeType === Node.TEXT_NODE ? n.textContent : "").join("").trim(), sub: "here", do: () => b.click() }
));

const commands = (): Choice[] => [
	{ icon: "plus", text: "New session", do: () => go("/sessions?new=1") },
	{ icon: "inbox", text: "Answer what waits", do: () => go("/approvals") },
	{ icon: "shield", text: "Rehearse a rule", do: () => go("/policies?view=edit") },
	{ icon: "circle-x", text: "Sessions that failed", do: () => go("/sessions?outcome=failed") },
	...(["system", "light", "dark"] as const).map((t): Choice => ({ icon: "sun-moon", text: `Theme: ${t}`, do: () => prefer({ theme: t }) })),
	{ icon: "list", text: prefs.value.dense ? "Rows: usual" : "Rows: dense", do: () => prefer({ dense: !prefs.value.dense }) },
	{ icon: "copy", text: "Copy the link to this page", do: () => copy(location.href, "the link").catch(say) },
	{ icon: "log-out", text: "Sign out", do: () => signOut() },
];

export function Palette({ close }: { close: () => void }) {
	const [text, setText] = useState(""), [own] = useState(here), [found, setFound] = useState<Choice[]>([]), [chosen, choose] = useState(0);
	const list = useRef<HTMLUListElement>(null);
	const has = (c: Choice) => text.toLowerCase().split(/\s+/).every((w) => c.text.toLowerCase().includes(w));
	const all = [...places.value.map((p): Choice => ({ icon: p.icon, text: p.title, sub: "g " + p.key, do: () => go(p.path) })), ...commands(), ...own].filter(has).concat(found);
	useEffect(() => {
		const stop = new AbortController();
		const timer = setTimeout(() => {
			read("/v1/sessions", { q: text, limit: 8 }, stop.signal).then((s) => setFound((s.sessions ?? []).map((x) => ({ icon: "message-square", text: x.title || x.id, sub: "session", do: () => go("/sessions/" + x.id) }))), () => {});
		}, text ? 120 : 0);
		return () => {
			clearTimeout(timer);
			stop.abort();
		};
	}, [text]);
	const pick = Math.min(chosen, all.length - 1);
	useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [pick]);
	const run = (c?: Choice) => {
		if (!c) return;
		close();
		c.do();
	};
	return (
		<Dialog title="Go to, or do" close={close}>
			<input class="palette" role="combobox" aria-expanded="true" aria-controls="choices" aria-activedescendant={pick >= 0 ? "choice" + pick : undefined} aria-label="Pages, sessions, commands" placeholder="A page, a session, a command" value={text} ref={(x) => x?.focus()}
				onInput={(e) => { setText(e.currentTarget.value); choose(0); }}
				onKeyDown={(e) => {
					if (e.key === "ArrowDown" || e.key === "ArrowUp") {
						e.preventDefault();
						choose((pick + (e.key === "ArrowDown" ? 1 : -1) + all.length) % Math.max(1, all.length));
					} else if (e.key === "Enter") {
						e.preventDefault();
						run(all[pick]);
					}
				}} />
			<ul class="choices" id="choices" role="listbox" aria-label="Choices" ref={list}>
				{all.map((c, i) => <li id={"choice" + i} role="option" aria-selected={i === pick} onClick={() => run(c)}><Icon name={c.icon} /><span>{visible(c.text)}</span>{c.sub && <span class="muted">{c.sub}</span>}</li>)}
			</ul>
			{all.length === 0 && <p class="muted">Nothing is called so.</p>}
		</Dialog>
	);
}
