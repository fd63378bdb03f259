// Settings: those of this browser, and those of new sessions with where each comes from.
import { command } from "../api";
import type { SettingsShown } from "../api.gen";
import { useLive } from "../load";
import { moment, prefer, prefs } from "../prefs";
import { Chips, Empty, Failed, now, Skeleton, visible } from "../ui";

export function Settings() {
	const { data, error, again } = useLive("settings", () => command<SettingsShown>("show_settings", {}), () => false);
	const p = prefs.value;
	const yes = async (on: boolean) => prefer({ notify: on && (await Notification.requestPermission()) === "granted" });
	return (
		<section class="page" aria-label="Settings">
			<header class="bar"><h1>Settings</h1></header>
			<section>
				<h2>This browser</h2>
				<dl class="facts">
					<div><dt>Theme</dt><dd><Chips label="Theme" of={[["system", "System"], ["light", "Light"], ["dark", "Dark"]]} chosen={p.theme} choose={(v) => prefer({ theme: v as "system" })} /></dd></div>
					<div><dt>Rows</dt><dd><Chips label="Rows" of={[["", "Usual"], ["dense", "Dense"]]} chosen={p.dense ? "dense" : ""} choose={(v) => prefer({ dense: !!v })} /></dd></div>
					<div><dt>Time</dt><dd><Chips label="Time zone" of={[["", "Local"], ["utc", "UTC"]]} chosen={p.utc ? "utc" : ""} choose={(v) => prefer({ utc: !!v })} /> <span class="muted">It is {moment(now.value)}.</span></dd></div>
					<div><dt>Keys</dt><dd><label class="check"><input type="checkbox" checked={p.letters} onChange={(e) => prefer({ letters: e.currentTarget.checked })} /> Single letters are commands</label></dd></div>
					<div><dt>Notifications</dt><dd>{"Notification" in window ? <label class="check"><input type="checkbox" checked={p.notify} onChange={(e) => yes(e.currentTarget.checked)} /> Tell of a new question while this page isn't in front{Notification.permission === "denied" && <span class="muted">: this browser refuses them to the page</span>}</label> : <span class="muted">This browser has none.</span>}</dd></div>
				</dl>
			</section>
			<section>
				<h2>New sessions</h2>
				<p class="muted">They are changed by <code>belay config set</code>, where the server runs. Of keys is shown only whether they are set.</p>
				{error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : !data.settings?.length ? <Empty title="No setting has a value." /> : (
					<div class="table" tabIndex={0} role="region" aria-label="Settings of new sessions">
						<table class="plain">
							<thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">From</th></tr></thead>
							<tbody>{data.settings.map((r) => <tr key={r.name}><th scope="row"><code>{r.name}</code></th><td><code>{visible(r.value) || <span class="muted">–</span>}</code></td><td class="muted">{visible(r.from || r.source)}</td></tr>)}</tbody>
						</table>
					</div>
				)}
				{data?.ignored?.map((i) => <p class="note">{visible(i.ignored)} in <code>{visible(i.from)}</code> doesn't count: {visible(i.reason)}</p>)}
			</section>
		</section>
	);
}
