// Costs: what was spent in a time, by day, model, session, tool or outcome. What isn't known is never nothing.
import { read } from "../api";
import type { Reads, Usage, Used } from "../api.gen";
import { beginningOf, dayOf } from "../days";
import { useLive } from "../load";
import { minute, zoneMinutes } from "../prefs";
import { among, ask, at } from "../route";
import { Button, Chips, count, counted, Empty, Failed, Icon, length, money, save, Skeleton, visible } from "../ui";

const ranges: [string, string][] = [["1", "24 hours"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"]];
type By = NonNullable<Reads["/v1/usage"]["query"]["by"]>;
const kinds: Record<Exclude<By, "hour">, string> = { day: "Day", model: "Model", session: "Session", tool: "Tool", outcome: "Outcome" };

const fresh = (u?: Usage) => (u?.input ?? 0) - (u?.cached ?? 0);

export function Costs() {
	const q = at.value.query, days = Number(q.get("days")) || 7, by = among("by", kinds) || "day";
	const from = q.get("from") ?? "", to = q.get("to") ?? "", chosen = !!from || !!to;
	const begins = from ? beginningOf(from) : (to ? beginningOf(to) : Date.now()) - days * 86400e3, ends = to ? beginningOf(to) + 86400e3 : Date.now();
	const wrong = isNaN(begins + ends) ? "A date is no date." : begins >= ends ? "The range ends before it begins." : "";
	const what: By = by === "day" && ends - begins <= 86400e3 ? "hour" : by;
	const { data, error, again } = useLive(`usage/${days}/${from}/${to}/${what}/${zoneMinutes()}`, async (s) => (wrong ? undefined : read("/v1/usage", { by: what, zone: zoneMinutes(), from: new Date(begins).toISOString(), ...(to && { to: new Date(ends).toISOString() }) }, s)), (type) => type.startsWith("turn."));
	const rows = data?.rows ?? [];
	return (
		<section class="page" aria-label="Costs">
			<header class="bar"><h1>Costs</h1><span class="grow" />
				<Button disabled={rows.length ? "" : "There is nothing to keep."} onClick={() => save(`belay-usage-${what}-${dayOf(begins)}-${dayOf(ends - 1)}.csv`, [csv(rows)], "text/csv")}><Icon name="download" /> CSV</Button></header>
			<div class="bar">
				<Chips label="Time" of={ranges} chosen={chosen ? "" : String(days)} choose={(v) => ask({ days: v, from: "", to: "" })} />
				<label class="muted">from <input type="date" value={from} max={to} onChange={(e) => ask({ from: e.currentTarget.value })} /></label>
				<label class="muted">to <input type="date" value={to} min={from} onChange={(e) => ask({ to: e.currentTarget.value })} /></label>
				<Chips label="By" of={Object.entries(kinds)} chosen={by} choose={(v) => ask({ by: v })} />
			</div>
			{wrong ? <Empty title={wrong} /> : error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : (
				<>
					{data.stale && <p class="note">Not all is counted yet: these figures are folded behind the log.</p>}
					<dl class="tiles">
						<div><dt>Recorded cost</dt><dd>{money(data.total.cost)}</dd></div>
						{data.total.cost?.unpriced ? <div><dt>Answers without a known price</dt><dd>{data.total.cost.unpriced}</dd></div> : null}
						<div><dt>Tokens read</dt><dd>{count(data.total.usage?.input)}</dd></div>
						<div><dt>of these cached</dt><dd>{count(data.total.usage?.cached)}</dd></div>
						<div><dt>Tokens written</dt><dd>{count(data.total.usage?.output)}</dd></div>
						<div><dt>Turns</dt><dd>{count(data.total.turns)}</dd></div>
						<div><dt>Calls</dt><dd>{count(data.total.calls)}</dd></div>
					</dl>
					{rows.length === 0 ? <Empty title="Nothing was used in this time."><p class="muted">Begin a session in <a href="/sessions">Sessions</a>, or at a terminal with <code>belay run "…"</code>.</p></Empty> : (
						<>
							{(what === "day" || what === "hour") && <Bars rows={rows} />}
							<Table rows={rows} by={what} all={rows.length + (data.more ?? 0)} />
							{data.more ? <p class="muted">and {data.more} more that cost less</p> : null}
						</>
					)}
				</>
			)}
		</section>
	);
}

const label = (r: Used, by: string) => (by === "hour" ? minute(r.of!) : r.title || r.of || "");

// a bar for each: its cost, or its tokens where nothing has a price
function Bars({ rows }: { rows: Used[] }) {
	const priced = rows.some((r) => r.cost?.microUsd), of = (r: Used) => (priced ? r.cost?.microUsd ?? 0 : (r.usage?.input ?? 0) + (r.usage?.output ?? 0));
	const most = Math.max(...rows.map(of), 1), w = 1000 / rows.length;
	return (
		<svg class="bars" viewBox="0 0 1000 120" preserveAspectRatio="none" role="img" aria-label={(priced ? "Cost" : "Tokens") + " over time; the table below has the figures"}>
			{rows.map((r, i) => <rect key={r.of} x={i * w + Math.min(2, w / 8)} width={Math.max(1, w - Math.min(4, w / 4))} y={120 - (of(r) / most) * 116} height={(of(r) / most) * 116}><title>{r.of}: {priced ? money(r.cost) : count(of(r))}</title></rect>)}
		</svg>
	);
}

function Table({ rows, by, all }: { rows: Used[]; by: By; all: number }) {
	const spent = by !== "tool", calls = by !== "model" && by !== "outcome", turns = by !== "model" && by !== "tool";
	return (
		<div class="table" tabIndex={0} role="region" aria-label={counted("Figures", rows.length, all)}>
			<table aria-rowcount={all + 1}>
				<thead><tr><th scope="col">{by === "hour" ? "Hour" : kinds[by]}</th>
					{spent && <><th scope="col">Cost</th><th scope="col">Read</th><th scope="col">Cached</th><th scope="col">Written</th></>}
					{turns && <th scope="col">Turns</th>}{calls && <><th scope="col">Calls</th><th scope="col">Failed</th></>}<th scope="col">Time</th></tr></thead>
				<tbody>{rows.map((r) => (
					<tr key={r.of}><th scope="row">{by === "session" ? <a href={"/sessions/" + r.of}>{visible(label(r, by))}</a> : by === "outcome" ? <a href={"/sessions?outcome=" + r.of}>{r.of!.replace("_", " ")}</a> : visible(label(r, by))}</th>
						{spent && <><td>{money(r.cost)}</td><td>{count(fresh(r.usage))}</td><td>{count(r.usage?.cached)}</td><td>{count(r.usage?.output)}</td></>}
						{turns && <td>{count(r.turns)}</td>}{calls && <><td>{count(r.calls)}</td><td class={r.failed ? "bad" : ""}>{count(r.failed)}</td></>}
						<td>{r.ms ? length(r.ms) : "–"}</td></tr>
				))}</tbody>
			</table>
		</div>
	);
}

function csv(rows: Used[]): string {
	const cell = (v: unknown) => {
		const text = String(v ?? "");
		// what a spreadsheet would take for a formula is text
		return /^[=+\-@\t\r]/.test(text) && typeof v !== "number" ? `"'${text.replaceAll('"', '""')}"` : /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
	};
	const lines = rows.map((r) => [r.of, r.title, r.cost?.priced ? (r.cost.microUsd ?? 0) / 1e6 : "unknown", r.cost?.unpriced ?? 0, r.usage?.input ?? 0, r.usage?.cached ?? 0, r.usage?.cacheWrite ?? 0, r.usage?.output ?? 0, r.requests ?? 0, r.turns ?? 0, r.calls ?? 0, r.failed ?? 0, r.ms ?? 0]);
	return [["of", "title", "usd", "unpriced", "input", "cached", "cacheWrite", "output", "requests", "turns", "calls", "failed", "ms"], ...lines].map((l) => l.map(cell).join(",")).join("\r\n") + "\r\n";
}
