// The icon of the tab, with how many questions wait.
import mark from "./icon.svg";

export function favicon(waiting: number): void {
	const badge = `<circle cx="22" cy="22" r="10" fill="#F0B44C"/><text x="22" y="27" text-anchor="middle" font-family="sans-serif" font-weight="700" font-size="14" fill="#131512">${waiting > 9 ? "9+" : waiting}</text></svg>`;
	document.querySelector<HTMLLinkElement>("link[rel=icon]")!.href = waiting ? "data:image/svg+xml," + encodeURIComponent(mark.trim().replace("</svg>", badge)) : "/icon.svg";
}
