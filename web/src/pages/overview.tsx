// Overview: what needs a person first, then what runs, and how the last day went.
import { useState } from "preact/hooks";
import { open, read } from "../api";
import type { NowShown, QuestionShown } from "../api.gen";
import { beginningOf, dayOf } from "../days";
import { useLive } from "../load";
import { Why } from "../session/inspector";
import { Ago, Button, count, counted, Empty, Failed, Icon, length, money, now, Skeleton, Status, visible, words } from "../ui";

export function Overview() {
	const { data, error, again } = useLive("overview", (s) => read("/v1/overview", {}, s));
	const today = dayOf(Date.now());
	const used = useLive("used/" + today, (s) => read("/v1/usage", { by: "outcome", from: new Date(beginningOf(today)).toISOString() }, s), (type) => type.startsWith("turn.")).data;
	const [asked, ask] = useState(""); // of which question or turn it is shown why
	const why = (id: string, of: string) => <Button kind="plain" label={"Why " + of} onClick={() => ask(asked === id ? "" : id)}>Why</Button>;
	const shown = (session: string, id: string) => asked === id && <li class="row-why"><Why session={session} id={id} /></li>;
	if (error) return <section class="page"><h1>Overview</h1><Failed error={error} again={again} /></section>;
	if (!data) return <section class="page"><h1>Overview</h1><Skeleton /></section>;
	return (
		<section class="page overview" aria-label="Overview">
			<header class="bar"><h1>Overview</h1></header>
			<h2>Needs you <span class="muted">{data.questions || ""}</span></h2>
			{data.needs?.length ? (
				<ul class="rows" aria-label={counted("Open questions", data.needs.length, data.questions)}>
					{data.needs.map((q) => [
						<li class="row on" key={q.actionId}>
							<Status tone="waiting" word={q.kind === "permission" ? "approve" : q.kind === "question" ? "answer" : q.kind} />
							<a class="main" href={"/approvals/" + q.actionId}><span class="name">{visible(q.title || q.sessionId)}</span><span class="sub muted">{asks(q)}</span></a>
							<span class="figures muted"><span class="wide">denied in {length(Date.parse(q.until ?? "") - now.value)}</span><Ago time={q.asked} /></span>
							<a class="button" href={"/approvals/" + q.actionId} aria-label={`${q.kind === "permission" ? "Review" : "Answer"} ${q.title || q.sessionId}`}>{q.kind === "permission" ? "Review" : "Answer"}</a>
							<a class="button plain wide" href={`/sessions/${q.sessionId}?item=${place(q)}`} aria-label={"Open " + (q.title || q.sessionId)}>Open</a>
							{why(q.actionId, q.title || q.sessionId)}
						</li>,
						shown(q.sessionId, q.actionId),
					])}
				</ul>
			) : <p class="calm muted"><Icon name="check" /> Nothing waits for you.</p>}
			<h2>Running now <span class="muted">{data.runs || ""}</span></h2>
			{data.running?.length ? (
				<ul class="rows" aria-label={counted("Running sessions", data.running.length, data.runs)}>
					{data.running.map((r) => (
						<li class="row" key={r.turnId}>
							<Status tone="running" word="running" />
							<Name r={r} sub={(r.flying ?? []).join(", ")} />
							<span class="figures muted"><span class="wide">{r.calls ?? 0} calls</span><span class="wide">{money(r.cost)}</span><Ago time={r.began} /></span>
						</li>
					))}
				</ul>
			) : data.day.sessions ? <p class="calm muted">Nothing runs.</p> : <Empty title="Nothing runs, and nothing ran today."><p class="muted">Begin a session in <a href="/sessions">Sessions</a>, or at a terminal with <code>belay run "…"</code>.</p></Empty>}
			<h2>Today</h2>
			<dl class="tiles">
				<div><dt>Spent</dt><dd><a href={`/costs?from=${today}&to=${today}`}>{used ? money(used.total.cost) : "…"}</a></dd></div>
				<div><dt>Tokens read</dt><dd>{count(used?.total.usage?.input)}</dd></div>
				<div><dt>Written</dt><dd>{count(used?.total.usage?.output)}</dd></div>
				<div><dt>Calls</dt><dd>{count(used?.total.calls)}</dd></div>
				<div><dt>Turns ended</dt><dd>{count(used?.total.turns)}</dd></div>
				{used?.rows?.map((r) => <div><dt>{(r.of ?? "").replace("_", " ")}</dt><dd>{r.turns ?? 0}</dd></div>)}
			</dl>
			{data.trouble?.length ? (
				<>
					<h2>Trouble of the last 24 hours</h2>
					<ul class="rows" aria-label="Trouble">
						{data.trouble.map((r) => [
							<li class="row" key={r.turnId}>
								<Status tone={r.outcome === "lost" ? "lost" : "failed"} word={(r.outcome ?? "").replace("_", " ")} />
								<Name r={r} sub={r.reason ?? ""} />
								<span class="figures muted"><Ago time={r.ended} /></span>
								{why(r.turnId, r.title || r.sessionId)}
							</li>,
							shown(r.sessionId, r.turnId),
						])}
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

/** Where a question is in its conversation. */
function place(q: QuestionShown): string {
	const call = open.value.find((a) => a.actionId === q.actionId)?.callId;
	return call ? "tool_call/" + call : "question/" + q.actionId;
}

function Name({ r, sub }: { r: NowShown; sub: string }) {
	return <a class="main" href={"/sessions/" + r.sessionId}><span class="name">{visible(r.title || r.sessionId)}</span><span class="sub muted">{visible(sub)}</span></a>;
}
