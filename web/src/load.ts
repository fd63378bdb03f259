// Data of a page: loaded, loaded again when something happened, and how old it is.
import { say } from "./ui";
import { useEffect, useRef, useState } from "preact/hooks";
import { staleSince, token, unexpected, Refusal } from "./api";
import { listen, store } from "./live";

/** Hears of facts of the store, or of another stream. */
export const hear = (f: (type: string) => void, stream = store): (() => void) => listen(stream, (e) => (e.type === "failed" ? say(e.data.message) : f(e.type)));

export interface Loaded<T> {
	data?: T;
	error?: Refusal;
	again: () => void;
}

/**
 * Loads, and loads again when facts of the store, or of another stream, come that this is about, at most three times a second.
 * What is only said of requests changes nothing else.
 */
export function useLive<T>(key: string, load: (signal: AbortSignal) => Promise<T>, about = (type: string) => !type.startsWith("channel."), stream?: string): Loaded<T> {
	const [state, set] = useState<{ key: string; data?: T; error?: Refusal }>({ key });
	const again = useRef(() => {});
	useEffect(() => {
		const stop = new AbortController();
		let busy = false, wanted = false, timer = 0;
		const run = async () => {
			if (busy) {
				wanted = true;
				return;
			}
			busy = true;
			do {
				wanted = false;
				try {
					const data = await load(stop.signal);
					if (!stop.signal.aborted) set({ key, data });
				} catch (e) {
					if (!stop.signal.aborted) {
						const error = e instanceof Refusal ? e : unexpected(e);
						set((old) => (error.code === "unreachable" && old.key === key && old.data ? old : { key, error }));
					}
				}
				await new Promise((done) => setTimeout(done, 300));
			} while (wanted && !stop.signal.aborted);
			busy = false;
		};
		const soon = () => {
			if (!timer) timer = setTimeout(() => ((timer = 0), run()), 30);
		};
		again.current = soon;
		run();
		const deaf = hear((type) => (about(type) || type === "resync" || type === "open" || type === "deleted") && soon(), stream);
		const back = staleSince.subscribe((v) => !v && soon());
		return () => {
			stop.abort();
			clearTimeout(timer);
			back();
			deaf();
		};
	}, [key, token.value]);
	return { ...(state.key === key ? state : {}), again: () => again.current() };
}
