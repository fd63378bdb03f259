// Which question letters may answer: what nobody read isn't answered.
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/** How long a question is on the screen before letters answer it, in milliseconds. */
const second = 1000;

/** Since when the questions of the page are on the screen, whole. */
const watched = new Map<Element, number>();

/** The part of the screen in which something can be seen: that of all that scrolls around it. */
function seen(of: Element): { top: number; bottom: number } {
	let [top, bottom] = [0, innerHeight];
	for (let x = of.parentElement; x; x = x.parentElement) {
		if (x === document.body || getComputedStyle(x).overflowY === "visible") continue;
		const r = x.getBoundingClientRect();
		[top, bottom] = [Math.max(top, r.top), Math.min(bottom, r.bottom)];
	}
	return { top, bottom };
}

/**
 * Watches a question: letters answer it when it has the focus and was on the screen for a second, from its beginning to its
 * answers. Of one that is taller than the screen both were seen, and the answers are. It has the attribute data-answerable then.
 * Another version is another question; "" is none.
 */
export function useWatched(box: RefObject<HTMLElement | null>, version: string): void {
	useEffect(() => {
		const q = box.current;
		if (!q || !version) return;
		// it takes the focus where nothing has it, or the link that led here
		const had = document.activeElement;
		if (!had || had === document.body || had.id === "page" || had.matches(`a[href="${CSS.escape(location.pathname)}"]`)) q.focus({ preventScroll: true });
		let begun = false; // its beginning was seen
		const look = () => {
			const end = q.querySelector(".answer .actions")?.getBoundingClientRect(), r = q.getBoundingClientRect(), s = seen(q), is = (y: number) => y >= s.top - 1 && y <= s.bottom + 1;
			const there = !document.hidden && !!end && end.height > 0 && is(end.bottom), tall = !!end && end.bottom - r.top > s.bottom - s.top;
			begun ||= !document.hidden && is(r.top);
			if (!there || !begun || !tall && !is(r.top)) watched.delete(q);
			else if (!watched.has(q)) watched.set(q, performance.now());
			q.toggleAttribute("data-answerable", answerable(q, performance.now()));
		};
		look();
		const timer = setInterval(look, 100);
		addEventListener("scroll", look, true);
		return () => {
			clearInterval(timer);
			removeEventListener("scroll", look, true);
			watched.delete(q);
		};
	}, [version]);
}

/** Reports whether letters that are pressed at a time answer a question. */
export const answerable = (q: Element, when: number) => q.contains(document.activeElement) && when - (watched.get(q) ?? when) >= second;

/** Who presses a letter too early waits for a second once more. */
export const early = (q: Element): void => void (watched.has(q) && watched.set(q, performance.now()));
