// A text of a model or a person: Markdown becomes elements, never HTML.
import { Fragment, h, type VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { visible } from "./ui";

interface Token {
	type: string; tag: string; nesting: number; content: string; info: string; hidden: boolean;
	attrs: [string, string][] | null; children: Token[] | null;
}

let parse: ((text: string) => Token[]) | null = null;
let loading: Promise<void> | null = null;

const file = "/markdown.js"; // a bundle beside this one
const load = () => (loading ??= import(file).then((m) => void (parse = m.parse), () => void (loading = null)));

// What is longer is shown as it is: no person reads it, and it would hold up the page.
const longest = 60_000;

export function Said({ text }: { text: string }) {
	const [, ready] = useState(!!parse);
	useEffect(() => {
		if (!parse) load().then(() => ready(true));
	}, []);
	if (!parse || text.length > longest) return <p class="plain-text">{visible(text.slice(0, longest * 4))}</p>;
	return <div class="said">{render(parse(text))}</div>;
}

const tags = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "strong", "em", "s"]);

function render(tokens: Token[]): (VNode | string)[] {
	const stack: { token?: Token; kids: (VNode | string)[] }[] = [{ kids: [] }];
	for (const t of tokens) {
		const top = stack.at(-1)!;
		if (t.nesting > 0) {
			stack.push({ token: t, kids: [] });
		} else if (t.nesting < 0) {
			if (stack.length > 1) stack.pop();
			stack.at(-1)!.kids.push(element(top.token!, top.kids));
		} else if (t.type === "inline") top.kids.push(...render(t.children ?? []));
		else if (t.type === "code_inline") top.kids.push(<code>{visible(t.content)}</code>);
		else if (t.type === "fence" || t.type === "code_block") top.kids.push(<pre class="code" tabIndex={0}>{visible(t.content)}</pre>);
		else if (t.type === "softbreak") top.kids.push("\n");
		else if (t.type === "hardbreak") top.kids.push(<br />);
		else if (t.type === "hr") top.kids.push(<hr />);
		else if (t.type === "image") top.kids.push(<span class="muted">[picture: {visible(t.content || attribute(t, "src"))}]</span>);
		else top.kids.push(visible(t.content));
	}
	return stack[0]!.kids;
}

const attribute = (t: Token, name: string) => t.attrs?.find(([n]) => n === name)?.[1] ?? "";

function element(t: Token, kids: (VNode | string)[]): VNode {
	if (t.hidden) return <Fragment>{kids}</Fragment>;
	if (t.tag === "a") return <Link to={attribute(t, "href")}>{kids}</Link>;
	if (/^h[1-6]$/.test(t.tag)) return <p class="heading"><strong>{kids}</strong></p>; // the page has its own headings
	return tags.has(t.tag) ? h(t.tag, t.tag === "ol" ? { start: Number(attribute(t, "start")) || 1 } : {}, kids) : <Fragment>{kids}</Fragment>;
}

/** A link says where it leads. Only addresses of the web are followed. */
function Link({ to, children }: { to: string; children: (VNode | string)[] }) {
	let host = "";
	try {
		const u = new URL(to);
		if (/^(https?|mailto):$/.test(u.protocol)) host = u.host || u.protocol.slice(0, -1);
	} catch {
		// it is no address
	}
	if (!host) return <Fragment>{children} <span class="muted">({visible(to)})</span></Fragment>;
	return <a href={to} target="_blank" rel="noopener noreferrer">{children} <span class="muted">({visible(host)})</span></a>;
}
