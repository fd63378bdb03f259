// The frame: the rail, the page, and getting in.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { caller, read, signedOut, signIn, signOut, staleSince, token, trade, Refusal } from "./api";
import type { ActionsShown } from "./api.gen";
import { useLive } from "./load";
import { places } from "./pages";
import { at, go, onLink } from "./route";
import { Button, clock, Dialog, Icon, say, Told } from "./ui";

const themes = ["system", "light", "dark"];
const setTheme = (name: string) => {
	document.documentElement.dataset.theme = name;
	localStorage.setItem("belay.theme", name);
};
setTheme(localStorage.getItem("belay.theme") ?? "system");

function Frame() {
	const path = at.value.path;
	const place = places.find((p) => path === p.path || p.path !== "/" && path.startsWith(p.path + "/"));
	const waiting = useLive("waiting", (s) => read<ActionsShown>("/v1/actions", {}, s), (type) => type.startsWith("action.") || type.startsWith("turn.")).data?.actions ?? [];
	const [help, setHelp] = useState(false);
	useEffect(() => {
		document.title = (waiting.length ? `(${waiting.length}) ` : "") + (place ? place.title + " · " : "") + "Belay";
	}, [waiting.length, place]);
	useKeys(() => setHelp(true));
	const Page = place?.page;
	return (
		<div class="frame" onClick={onLink}>
			<a class="skip" href="#page" onClick={(e) => { e.preventDefault(); document.getElementById("page")!.focus(); }}>To the content</a>
			<nav class="rail" aria-label="Pages">
				<a class="mark" href={places[0]!.path} aria-label="Belay"><img src="/icon.svg" alt="" width="24" height="24" /><span>Belay</span></a>
				{places.map((p) => (
					<a href={p.path} aria-current={p === place ? "page" : undefined} title={`${p.title} (g ${p.key})`}>
						<Icon name={p.icon} /><span>{p.title}</span>
						{p.waits && waiting.length > 0 && <b class="badge" aria-label={waiting.length + " wait"}>{waiting.length}</b>}
					</a>
				))}
				<div class="rest">
					<button type="button" title="Theme" onClick={() => setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme!) + 1) % 3]!)}><Icon name="sun-moon" /><span>Theme</span></button>
					<button type="button" title={`Sign out (${caller.value?.name || caller.value?.role})`} onClick={() => signOut()}><Icon name="log-out" /><span>Sign out</span></button>
				</div>
			</nav>
			<main id="page" tabIndex={-1}>
				{staleSince.value > 0 && <p class="stale" role="status"><Icon name="unplug" /> Stale since {clock(staleSince.value)}: the server doesn't answer. It is tried again.</p>}
				{Page ? <Page id={decodeURIComponent(path.slice(place!.path.length + 1))} /> : <div class="empty"><p>There is no such page.</p><a href={places[0]!.path}>{places[0]!.title}</a></div>}
			</main>
			<Told />
			<Spoken waiting={waiting.length} />
			{help && <Help close={() => setHelp(false)} />}
		</div>
	);
}

/** What a screen reader is told: a new question, at once. */
function Spoken({ waiting }: { waiting: number }) {
	const [said, set] = useState({ n: waiting, text: "" });
	useEffect(() => {
		if (waiting !== said.n) set({ n: waiting, text: waiting > said.n ? `${waiting} ${waiting === 1 ? "question waits" : "questions wait"} for you.` : "" });
	}, [waiting]);
	return <div class="spoken" role="alert">{said.text}</div>;
}

function Help({ close }: { close: () => void }) {
	const keys: [string, string][] = [["?", "this list"], ["/", "search"], ["j k", "next, previous"], ["Enter", "open"], ...places.map((p): [string, string] => ["g " + p.key, p.title]),
		["a s d", "of a question: allow once, allow for the session, deny"], ["e", "change the call"], ["w", "why it is asked"]];
	return (
		<Dialog title="Keys" close={close}>
			<dl class="keys">{keys.map(([k, what]) => <div><dt><kbd>{k}</kbd></dt><dd>{what}</dd></div>)}</dl>
			<label class="check"><input type="checkbox" checked={lettersOn()} onChange={(e) => localStorage.setItem("belay.keys", e.currentTarget.checked ? "" : "off")} /> Single letters are commands</label>
		</Dialog>
	);
}

const lettersOn = () => localStorage.getItem("belay.keys") !== "off";

function useKeys(help: () => void) {
	useEffect(() => {
		let after = "";
		const on = (e: KeyboardEvent) => {
			const in_ = e.target as HTMLElement;
			if (e.ctrlKey || e.metaKey || e.altKey || !lettersOn() || in_.closest("input, textarea, select, dialog[open]")) return;
			const was = after;
			after = e.key === "g" ? "g" : "";
			const to = was === "g" && places.find((p) => p.key === e.key);
			if (to) go(to.path);
			else if (e.key === "?") help();
			else if (e.key === "/") document.getElementById("search")?.focus() ?? go("/sessions");
			else if (e.key === "j" || e.key === "k") {
				const rows = [...document.querySelectorAll<HTMLElement>("#page .rows a.main")];
				const i = rows.indexOf(document.activeElement as HTMLElement);
				rows[Math.min(rows.length - 1, Math.max(0, i + (e.key === "j" ? 1 : -1)))]?.focus();
			} else {
				const button = document.querySelector<HTMLElement>(`#page [aria-keyshortcuts="${CSS.escape(e.key)}"]`);
				if (!button) return;
				button.click();
			}
			e.preventDefault();
		};
		addEventListener("keydown", on);
		return () => removeEventListener("keydown", on);
	}, []);
}

function Enter() {
	const [text, setText] = useState(""), [error, setError] = useState<Refusal | null>(null);
	const try_ = () => signIn(text.trim()).catch((e) => setError(e));
	return (
		<main class="enter">
			<img src="/icon.svg" alt="" width="48" height="48" />
			<h1>Belay</h1>
			{signedOut.value && <p role="alert">{signedOut.value}</p>}
			<p>Run <code>belay console</code> beside the server and open the address that it prints.</p>
			<form onSubmit={(e) => { e.preventDefault(); try_(); }}>
				<label>Or paste a token<input type="password" autocomplete="off" value={text} onInput={(e) => setText(e.currentTarget.value)} /></label>
				<Button kind="primary" disabled={text.trim() ? "" : "Paste a token first."} onClick={try_}>Sign in</Button>
			</form>
			{error && <p class="bad" role="alert">{error.message} <span class="muted">{error.hint}</span></p>}
			<Told />
		</main>
	);
}

function App() {
	const [ready, set] = useState(false);
	useEffect(() => {
		const code = new URLSearchParams(location.hash.slice(1)).get("code");
		const enter = async () => {
			if (location.hash) history.replaceState(null, "", location.pathname + location.search);
			if (code) await trade(code).catch(say);
			// a server that doesn't answer yet is asked again: the token isn't worthless
			while (token.value && !caller.value) await signIn(token.value).catch(() => new Promise((done) => setTimeout(done, 1000)));
			set(true);
		};
		enter();
	}, []);
	if (token.value && caller.value) return <Frame />;
	return ready || !token.value && !location.hash ? <Enter /> : null;
}

render(<App />, document.body);
