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

const zone = () => (prefs.value.utc ? { timeZone: "UTC" } : {});

export const clock = (time: string | number) => new Date(time).toLocaleTimeString([], { hour12: false, ...zone() });
export const moment = (time: string | number) => new Date(time).toLocaleString([], { hour12: false, ...zone() });
export const day = (time: string | number) => new Date(time).toLocaleDateString([], zone());

/** Minutes that local time is before UTC, as the server counts days. */
export const zoneMinutes = () => (prefs.value.utc ? 0 : -new Date().getTimezoneOffset());
