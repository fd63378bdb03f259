// Health: what the machine gives, how far views and queues are, and what the process counts.
import { useEffect, useState } from "preact/hooks";
import { command, may, text as readText } from "../api";
import type { Finding, Findings } from "../api.gen";
import { useLive } from "../load";
import { Button, bytes, count, Empty, Failed, length, Skeleton, Spark, Status, visible, type Tone } from "../ui";

const tones: { [state: string]: Tone } = { ok: "ok", note: "waiting", missing: "waiting", failed: "failed" };
const kept = 60; // figures of each line

interface Family { name: string; help: string; grows: boolean; total: number; series: { labels: string; value: number }[] }

/** Reads what Prometheus reads; of histograms their counts. */
export function families(exposition: string): Family[] {
	const all = new Map<string, Family>();
	for (const line of exposition.split("\n")) {
		const help = /^# HELP (\S+) (.*)$/.exec(line);
		if (help) all.set(help[1]!, { name: help[1]!, help: help[2]!, grows: false, total: 0, series: [] });
		const type = /^# TYPE (\S+) (counter|histogram|summary)$/.exec(line);
		if (type && all.has(type[1]!)) all.get(type[1]!)!.grows = true;
		const m = /^([a-z_]+?)(_count)?(\{.*\})? (\S+)$/.exec(line);
		const f = m && (all.get(m[1]! + (m[2] ?? "")) ?? all.get(m[1]!));
		if (!f || (m[3] ?? "").includes("le=")) continue;
		f.total += Number(m[4]);
		f.series.push({ labels: (m[3] ?? "").slice(1, -1), value: Number(m[4]) });
	}
	return [...all.values()].filter((f) => f.series.length);
}

const told: [RegExp, string][] = [[/^belay_(sessions_|queue_|turn_wait|approvals)/, "Queue"], [/^belay_store|_lag$/, "Store, and how far views of it are behind"], [/refused|given_up|denied|beyond_limits/, "Refusals"], [/^belay_(turns|steps|tool|tokens|cost|model|agent|subagent|quota)/, "Work"], [/./, "Process"]];

/** A figure, by what it counts. */
function figure(name: string, n: number): string {
	if (!n) return "0";
	if (/_bytes$/.test(name)) return bytes(n);
	if (/(uptime|oldest)_seconds$/.test(name)) return length(n * 1000);
	return n < 1e4 && n % 1 ? n.toFixed(2) : count(n);
}

/** The parts of a figure, the largest first: by code, tool, outcome, … */
const parts = (f: Family) => f.series.filter((s) => s.labels && s.value).sort((a, b) => b.value - a.value).slice(0, 6).map((s) => `${s.labels.replace(/\w+="([^"]*)"/g, "$1").replace(/,/g, " ")} ${figure(f.name, s.value)}`).join(", ");

/** Of what only grows, how much came between two looks. */
const steps = (all: number[], grows: boolean) => (grows ? all.slice(1).map((n, i) => Math.max(0, n - all[i]!)) : all);

/** Layers of the sandbox, whose names are indented, are told together where they are as they should be. */
function joined(all: Finding[]): Finding[] {
	const fine = all.filter((f) => f.name.startsWith(" ") && f.state === "ok");
	const out = all.filter((f) => !fine.includes(f));
	const box = out.findIndex((f) => f.name === "sandbox");
	if (box >= 0 && fine.length) out.splice(box + 1, 0, { name: "layers", state: "ok", what: fine.map((f) => f.name.trim()).join(", ") });
	return out;
}

export function Health() {
	const doctor = useLive("doctor", async () => (may("work") ? command<Findings>("doctor", {}) : null), () => false);
	const [past, set] = useState<Map<string, number[]>>(new Map());
	const [now, setNow] = useState<Family[] | null>(null), [error, setError] = useState("");
	useEffect(() => {
		let stop = false;
		const look = async () => {
			while (!stop) {
				if (!document.hidden) try {
					const all = families(await readText("/metrics"));
					setNow(all);
					setError("");
					set((old) => new Map(all.map((f) => [f.name, [...(old.get(f.name) ?? []), f.total].slice(-kept)])));
				} catch (e) {
					setError(e instanceof Error ? e.message : "");
				}
				await new Promise((done) => setTimeout(done, 3000));
			}
		};
		look();
		return () => void (stop = true);
	}, []);
	const group = (f: Family) => told.find(([is]) => is.test(f.name))![1];
	return (
		<section class="page" aria-label="Health">
			<header class="bar"><h1>Health</h1><span class="grow" /><Button onClick={doctor.again} scope="work">Look again</Button></header>
			<h2>Doctor</h2>
			{doctor.error ? <Failed error={doctor.error} again={doctor.again} /> : doctor.data === undefined ? <Skeleton rows={4} /> : doctor.data === null ? <Empty title="What the machine gives is an operator's to see."><p class="muted">At a terminal: <code>belay doctor</code></p></Empty> : (
				<ul class="rows" aria-label="Findings">
					{joined(doctor.data.findings ?? []).map((f) => <li class="row"><Status tone={tones[f.state] ?? "muted"} word={f.state} /><span class="main"><span class="name">{f.name.trim()}</span><span class="sub muted wrap">{visible(f.what)}{f.try && <> · try: <code>{visible(f.try)}</code></>}</span></span></li>)}
				</ul>
			)}
			{error && !now ? <p class="bad" role="alert">{visible(error)}</p> : !now ? <Skeleton rows={4} /> : [...new Set(told.map(([, g]) => g))].map((g) => {
				const of = now.filter((f) => group(f) === g);
				return of.length > 0 && (
					<section key={g}>
						<h2>{g}</h2>
						<ul class="rows" aria-label={g}>
							{of.map((f) => (
								<li class="row" key={f.name}>
									<span class="main"><code class="name">{f.name.replace(/^belay_/, "")}</code><span class="sub muted wrap">{f.help}{parts(f) && <> · {visible(parts(f))}</>}</span></span>
									<Spark of={steps(past.get(f.name) ?? [], f.grows)} label={`${f.name}, now ${f.total}${f.grows ? "; the line is what was added" : ""}`} />
									<span class="figures"><b>{figure(f.name, f.total)}</b></span>
								</li>
							))}
						</ul>
					</section>
				);
			})}
		</section>
	);
}
