// Days of the chosen time zone, named as dates are everywhere: 2026-11-28.
import { zoneMinutes } from "./prefs";

export const dayOf = (time: number) => new Date(time + zoneMinutes() * 60e3).toISOString().slice(0, 10);

/** When a day begins; NaN if that isn't one. */
export const beginningOf = (day: string) => Date.parse(day + "T00:00:00Z") - zoneMinutes() * 60e3;
