// Access: tokens, what they may do and until when, and what was asked for with them.
import { useState } from "preact/hooks";
import { caller, command, may } from "../api";
import type { AuditListed, TokenCreated, TokensShown, TokenShown } from "../api.gen";
import { useLive } from "../load";
import { day, moment } from "../prefs";
import { ask, at } from "../route";
import { Ago, Button, Copy, Dialog, Empty, Failed, Skeleton, Status, visible } from "../ui";

export function Access() {
	const { data, error, again } = useLive("tokens", async () => (may("admin") ? command<TokensShown>("list_tokens", {}) : { tokens: [] }), () => false);
	const [making, make] = useState(false), [made, setMade] = useState<TokenCreated | null>(null);
	const [role, setRole] = useState("viewer"), [name, setName] = useState(""), [days, setDays] = useState("30");
	const is = caller.value;
	return (
		<section class="page" aria-label="Access">
			<header class="bar"><h1>Access</h1><span class="grow" /><Button kind="primary" scope="admin" onClick={() => make(true)}>New token</Button></header>
			<p class="muted">You are {is?.name ? visible(is.name) : "here"} with a token of role {is?.role}{is?.until ? `, until ${moment(is.until)}` : ""}. It may: {is?.scopes?.join(", ")}.</p>
			{!may("admin") ? <Empty title="The list of tokens is an owner's."><p class="muted">At a terminal: <code>belay token list</code>, or <code>belay console --role owner</code>.</p></Empty>
				: error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : (
					<ul class="rows" aria-label="Tokens">
						{[...(data.tokens ?? [])].sort((a, b) => b.created.localeCompare(a.created)).map((t) => {
							const over = t.revoked || (t.until && Date.parse(t.until) < Date.now());
							return (
								<li class="row" key={t.tokenId}>
									<Status tone={over ? "muted" : "ok"} word={t.revoked ? "revoked" : over ? "expired" : "good"} />
									<span class="main"><span class="name">{visible(t.name || t.tokenId)}</span><span class="sub muted">{t.role} · {t.tenant}{t.until ? " · until " + day(t.until) : " · for ever"}{t.tokenId === is?.tokenId ? " · this page" : ""}</span></span>
									<span class="figures muted"><a class="wide" href={"/access?by=token:" + t.tokenId}>what it did</a><span class="wide">{t.used ? <>used <Ago time={t.used} /> ago</> : "never used"}</span><Ago time={t.created} /></span>
									{!over && <Button kind="danger" scope="admin" label={"Revoke " + (t.name || t.tokenId)} onClick={async () => {
										await command("revoke_token", { tokenId: t.tokenId });
										again();
									}}>Revoke</Button>}
								</li>
							);
						})}
					</ul>
				)}
			{may("admin") && <Audit tokens={data?.tokens ?? []} />}
			{making && (
				<Dialog title="New token" close={() => { make(false); setMade(null); }}>
					{made ? (
						<div class="form"><p>It is shown this once:</p><pre class="code" tabIndex={0}>{made.token}</pre><div class="actions"><Copy text={made.token ?? ""} what="the token" /></div></div>
					) : (
						<form class="form" onSubmit={(e) => e.preventDefault()}>
							<label>Role<select value={role} onChange={(e) => setRole(e.currentTarget.value)}><option value="viewer">viewer: read</option><option value="approver">approver: answer questions</option><option value="operator">operator: give work</option><option value="owner">owner: everything</option></select></label>
							<label>Name<input value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
							<label>Days <span class="muted">for ever when it is empty</span><input type="number" min="1" value={days} onInput={(e) => setDays(e.currentTarget.value)} /></label>
							<div class="actions"><Button kind="primary" scope="admin" onClick={async () => {
								setMade(await command<TokenCreated>("create_token", { role, name, ...(days && { until: new Date(Date.now() + Number(days) * 86400e3).toISOString() }) }));
								again();
							}}>Make it</Button></div>
						</form>
					)}
				</Dialog>
			)}
		</section>
	);
}

/** What callers asked for, the newest first. */
function Audit({ tokens }: { tokens: TokenShown[] }) {
	const by = at.value.query.get("by") ?? "", before = at.value.query.get("before") ?? "";
	const { data, error, again } = useLive(`audit/${by}/${before}`, () => command<AuditListed>("list_audit", { ...(by && { principal: by }), ...(before && { before: Number(before) }), limit: 50 }), (type) => type.startsWith("channel."));
	const named = (principal: string) => tokens.find((t) => "token:" + t.tokenId === principal)?.name || principal;
	return (
		<>
			<div class="bar sub-bar"><h2>What was asked for</h2>{by && <button type="button" class="chip" aria-pressed="true" onClick={() => ask({ by: "", before: "" })}>by {visible(named(by))} ×</button>}</div>
			{error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : !data.entries?.length ? <Empty title={data.next ? "Nothing among these facts; look earlier." : "Nothing was asked for yet."} /> : (
				<ul class="rows" aria-label="What callers asked for">
					{data.entries.map((e) => (
						<li class="row" key={e.eventId}>
							<Status tone={e.code === "accepted" ? "ok" : "failed"} word={e.code === "accepted" ? "done" : "refused"} />
							<span class="main"><code class="name">{visible(e.command)}</code><span class="sub muted">{visible(named(e.principal))}{e.code !== "accepted" ? " · " + e.code : ""}{e.message ? " · " + visible(e.message) : ""}{e.count ? ` · ${e.count} times` : ""}</span></span>
							<span class="figures muted"><Ago time={e.at} /></span>
						</li>
					))}
				</ul>
			)}
			<div class="actions">{before && <Button onClick={() => ask({ before: "" })}>Newest</Button>}{data?.next ? <Button onClick={() => ask({ before: String(data.next) })}>Earlier</Button> : null}</div>
		</>
	);
}
