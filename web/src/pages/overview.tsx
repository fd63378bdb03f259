// Overview: what needs a person first, then what runs, and how the last day went.
import { open, read } from "../api";
import type { NowShown, OverviewShown, QuestionShown, UsageShown } from "../api.gen";
import { useLive } from "../load";
import { Ago, count, Empty, Failed, Icon, length, money, now, Skeleton, Status, visible, words } from "../ui";

export function Overview() {
	const { data, error, again } = useLive("overview", (s) => read<OverviewShown>("/v1/overview", {}, s));
	const used = useLive("used", (s) => read<UsageShown>("/v1/usage", { by: "hour" }, s), (type) => type.startsWith("turn.")).data;
	if (error) return <section class="page"><h1>Overview</h1><Failed error={error} again={again} /></section>;
	if (!data) return <section class="page"><h1>Overview</h1><Skeleton /></section>;
	const ends = Object.entries(data.day.ends);
	return (
		<section class="page overview" aria-label="Overview">
			<header class="bar"><h1>Overview</h1></header>
			<h2>Needs you <span class="muted">{data.questions || ""}</span></h2>
			{data.needs?.length ? (
				<ul class="rows" aria-label="Open questions">
					{data.needs.map((q) => (
						<li class="row on" key={q.actionId}>
							<Status tone="waiting" word={q.kind === "permission" ? "approve" : q.kind === "question" ? "answer" : q.kind} />
							<a class="main" href={"/approvals/" + q.actionId}><span class="name">{visible(q.title || q.sessionId)}</span><span class="sub muted">{asks(q)}</span></a>
							<span class="figures muted"><span class="wide">denied in {length(Date.parse(q.until ?? "") - now.value)}</span><Ago time={q.asked} /></span>
							<a class="button" href={"/approvals/" + q.actionId} aria-label={"Review " + (q.title || q.sessionId)}>Review</a>
						</li>
					))}
				</ul>
			) : <p class="calm muted"><Icon name="check" /> Nothing waits for you.</p>}
			<h2>Running now <span class="muted">{data.runs || ""}</span></h2>
			{data.running?.length ? (
				<ul class="rows" aria-label="Running sessions">
					{data.running.map((r) => (
						<li class="row" key={r.turnId}>
							<Status tone="running" word="running" />
							<Name r={r} sub={(r.flying ?? []).join(", ")} />
							<span class="figures muted"><span class="wide">{r.calls ?? 0} calls</span><span class="wide">{money(r.cost)}</span><Ago time={r.began} /></span>
						</li>
					))}
				</ul>
			) : data.day.sessions ? <p class="calm muted">Nothing runs.</p> : <Empty title="Nothing runs, and nothing ran today."><p class="muted">Begin a session in <a href="/sessions">Sessions</a>, or at a terminal with <code>belay run "…"</code>.</p></Empty>}
			<h2>The last 24 hours</h2>
			<dl class="tiles">
				<div><dt>Sessions</dt><dd>{data.day.sessions}</dd></div>
				<div><dt>Spent</dt><dd><a href="/costs?days=1">{used ? money(used.total.cost) : "…"}</a></dd></div>
				<div><dt>Tokens read</dt><dd>{count(used?.total.usage?.input)}</dd></div>
				<div><dt>Written</dt><dd>{count(used?.total.usage?.output)}</dd></div>
				<div><dt>Calls</dt><dd>{count(used?.total.calls)}</dd></div>
				{ends.map(([outcome, n]) => <div><dt>{outcome.replace("_", " ")}</dt><dd>{n}</dd></div>)}
			</dl>
			{data.trouble?.length ? (
				<>
					<h2>Trouble</h2>
					<ul class="rows" aria-label="Trouble">
						{data.trouble.map((r) => (
							<li class="row" key={r.turnId}>
								<Status tone={r.outcome === "lost" ? "lost" : "failed"} word={(r.outcome ?? "").replace("_", " ")} />
								<Name r={r} sub={r.reason ?? ""} />
								<span class="figures muted"><Ago time={r.ended} /></span>
							</li>
						))}
					</ul>
				</>
			) : null}
		</section>
	);
}

/** What a question asks: of a call the tool, and it in a few words. */
function asks(q: QuestionShown): string {
	const call = words(open.value.find((a) => a.actionId === q.actionId)?.args);
	return visible(q.kind === "permission" && call ? `${q.tool}: ${call}` : q.prompt || q.tool || "");
}

function Name({ r, sub }: { r: NowShown; sub: string }) {
	return <a class="main" href={"/sessions/" + r.sessionId}><span class="name">{visible(r.title || r.sessionId)}</span><span class="sub muted">{visible(sub)}</span></a>;
}
