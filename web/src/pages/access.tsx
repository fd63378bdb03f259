// Access: tokens, what they may do, and until when.
import { useState } from "preact/hooks";
import { caller, command, may } from "../api";
import type { TokenCreated, TokensShown } from "../api.gen";
import { useLive } from "../load";
import { Ago, Button, Copy, Dialog, Empty, Failed, Skeleton, Status, visible } from "../ui";

export function Access() {
	const { data, error, again } = useLive("tokens", async () => (may("admin") ? command<TokensShown>("list_tokens", {}) : { tokens: [] }), () => false);
	const [making, make] = useState(false), [made, setMade] = useState<TokenCreated | null>(null);
	const [role, setRole] = useState("viewer"), [name, setName] = useState(""), [days, setDays] = useState("30");
	const is = caller.value;
	return (
		<section class="page" aria-label="Access">
			<header class="bar"><h1>Access</h1><span class="grow" /><Button kind="primary" scope="admin" onClick={() => make(true)}>New token</Button></header>
			<p class="muted">You are {is?.name ? visible(is.name) : "here"} with a token of role {is?.role}{is?.until ? `, until ${new Date(is.until).toLocaleString()}` : ""}. It may: {is?.scopes?.join(", ")}.</p>
			{!may("admin") ? <Empty title="The list of tokens is an owner's."><p class="muted">At a terminal: <code>belay token list</code>, or <code>belay console --role owner</code>.</p></Empty>
				: error ? <Failed error={error} again={again} /> : !data ? <Skeleton /> : (
					<ul class="rows" aria-label="Tokens">
						{[...(data.tokens ?? [])].reverse().map((t) => {
							const over = t.revoked || (t.until && Date.parse(t.until) < Date.now());
							return (
								<li class="row" key={t.tokenId}>
									<Status tone={over ? "muted" : "ok"} word={t.revoked ? "revoked" : over ? "expired" : "good"} />
									<span class="main"><span class="name">{visible(t.name || t.tokenId)}</span><span class="sub muted">{t.role} · {t.tenant}{t.until ? " · until " + new Date(t.until).toLocaleDateString() : " · for ever"}{t.tokenId === is?.tokenId ? " · this page" : ""}</span></span>
									<span class="figures muted"><Ago time={t.created} /></span>
									{!over && <Button kind="danger" scope="admin" label={"Revoke " + (t.name || t.tokenId)} onClick={async () => {
										await command("revoke_token", { tokenId: t.tokenId });
										again();
									}}>Revoke</Button>}
								</li>
							);
						})}
					</ul>
				)}
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
