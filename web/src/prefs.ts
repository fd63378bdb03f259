// What a person has chosen for this browser.
import { signal } from "@preact/signals";

export interface Prefs { theme: "system" | "light" | "dark"; dense: boolean; utc: boolean; letters: boolean; notify: boolean }

const kept = "belay.prefs";

function stored(): Partial<Prefs> {
	try {
		return JSON.parse(localStorage.getItem(kept) ?? "{}");
	} catch {
		return {};
	}
}

export const prefs = signal<Prefs>({ theme: "system", dense: false, utc: false, letters: true, notify: false, ...stored() });

export function prefer(change: Partial<Prefs>): void {
	prefs.value = { ...prefs.value, ...change };
	localStorage.setItem(kept, JSON.stringify(prefs.value));
}

prefs.subscribe((p) => {
	document.documentElement.dataset.theme = p.theme;
	document.documentElement.dataset.dense = String(p.dense);
});

const styles = { clock: { timeStyle: "medium" }, minute: { timeStyle: "short" }, day: { dateStyle: "short" }, moment: { dateStyle: "short", timeStyle: "medium" } } as const;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Writes a time, in the zone that was chosen: the one place where that is done. A day is 2026-11-28 everywhere. */
function written(time: string | number, style: keyof typeof styles): string {
	const zone = prefs.value.utc ? "UTC" : undefined, key = style + zone, at = new Date(time);
	let f = formats.get(key);
	if (!f) formats.set(key, (f = new Intl.DateTimeFormat("sv-SE", { ...styles[style], timeZone: zone })));
	return isNaN(at.getTime()) ? "–" : f.format(at) + (zone && style === "moment" ? " UTC" : "");
}

export const clock = (time: string | number) => written(time, "clock");
export const minute = (time: string | number) => written(time, "minute");
export const moment = (time: string | number) => written(time, "moment");
export const day = (time: string | number) => written(time, "day");

/** Minutes that local time is before UTC, as the server counts days. */
export const zoneMinutes = () => (prefs.value.utc ? 0 : -new Date().getTimezoneOffset());
