// The frame: the rail, the page, and getting in.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { caller, newer, open, read, signedOut, signIn, signOut, staleSince, token, trade, Refusal } from "./api";
import { favicon } from "./favicon";
import { Help, Palette, useKeys } from "./keys";
import { polls } from "./live";
import { useLive } from "./load";
import { places, type Place } from "./pages";
import { at, onLink } from "./route";
import { speak, Spoken } from "./spoken";
import { Button, clock, Dialog, Fence, Icon, say, Told } from "./ui";

function Frame() {
	const path = at.value.path;
	const place = places.value.find((p) => path === p.path || p.path !== "/" && path.startsWith(p.path + "/"));
	const asked = useLive("waiting", (s) => read("/v1/actions", {}, s), (type) => type.startsWith("action.") || type.startsWith("turn.")).data?.actions, waiting = Array.isArray(asked) ? asked : [];
	useEffect(() => { open.value = waiting; }, [waiting]);
	const [over, show] = useState<"" | "help" | "palette" | "more">("");
	const close = () => show("");
	useEffect(() => {
		document.title = (waiting.length ? `(${waiting.length}) ` : "") + (place ? place.title + " · " : "") + "Belay";
		favicon(waiting.length);
	}, [waiting.length, place]);
	useEffect(() => {
		if (staleSince.value) speak("The server doesn't answer.");
		else if (newer.value) speak("The server is another build now.");
	}, [staleSince.value > 0, newer.value]);
	useKeys(() => show("help"), () => show("palette"));
	const Page = place?.page;
	const entry = (p: Place, title = p.title) => (
		<a href={p.path} aria-current={p === place ? "page" : undefined} title={`${p.title} (g ${p.key})`} onClick={close}>
			<Icon name={p.icon} /><span>{title}</span>
			{p.waits && waiting.length > 0 && <b class="badge" aria-label={waiting.length + " wait"}>{waiting.length}</b>}
		</a>
	);
	return (
		<div class="frame" onClick={onLink}>
			<a class="skip" href="#page" onClick={(e) => { e.preventDefault(); document.getElementById("page")!.focus(); }}>To the content</a>
			<nav class="rail" aria-label="Pages">
				<a class="mark" href={places.value[0]!.path} aria-label="Belay"><img src="/icon.svg" alt="" width="24" height="24" /><span>Belay</span></a>
				<button type="button" class="jump" title="Pages, sessions, commands (Ctrl K)" onClick={() => show("palette")}><Icon name="search" /><span>Go to…</span><kbd aria-hidden="true">Ctrl K</kbd></button>
				{[...new Set(places.value.map((p) => p.group))].map((g) => <div class="group" role="group" aria-label={g}><span class="muted" aria-hidden="true">{g}</span>{places.value.filter((p) => p.group === g).map((p) => entry(p))}</div>)}
				<div class="rest"><button type="button" title={`Sign out (${caller.value?.name || caller.value?.role})`} onClick={() => signOut()}><Icon name="log-out" /><span>Sign out</span></button></div>
			</nav>
			<nav class="bottom" aria-label="Pages">
				{places.value.filter((p) => p.waits).map((p) => entry(p, "Needs you"))}{places.value.filter((p) => p.path === "/sessions").map((p) => entry(p))}
				<a href="/sessions?new=1"><Icon name="plus" /><span>New</span></a>
				<button type="button" onClick={() => show("more")}><Icon name="menu" /><span>More</span></button>
			</nav>
			<main id="page" tabIndex={-1}>
				{staleSince.value > 0 && <p class="stale"><Icon name="unplug" /> Stale since {clock(staleSince.value)}: the server doesn't answer. It is tried again.</p>}
				{polls.value && <p class="stale"><Icon name="clock" /> This tab asks every ten seconds: four others have the streams that a browser can hold.</p>}
				{newer.value && <p class="stale"><Icon name="refresh-cw" /> The server is another build now. <Button onClick={() => location.reload()}>Load its page</Button></p>}
				{Page ? <Fence key={path}><Page id={decodeURIComponent(path.slice(place!.path.length + 1))} /></Fence> : <div class="empty"><p>There is no such page.</p><a href={places.value[0]!.path}>{places.value[0]!.title}</a></div>}
			</main>
			<Told />
			<Spoken waiting={waiting} />
			{over === "help" && <Help close={close} />}
			{over === "palette" && <Palette close={close} />}
			{over === "more" && <Dialog title="More" close={close}><nav class="more" aria-label="More pages">{places.value.map((p) => entry(p))}<button type="button" onClick={() => signOut()}><Icon name="log-out" /><span>Sign out</span></button></nav></Dialog>}
		</div>
	);
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
	if (token.value && caller.value) return <Fence><Frame /></Fence>;
	return ready || !token.value && !location.hash ? <Enter /> : null;
}

// an address with a code that is opened in a page that is open
addEventListener("hashchange", () => location.hash.startsWith("#code=") && location.reload());
render(<App />, document.body);
