// The lines that two texts don't have in common, as hunks. There is no DOM here.
export interface Hunk { line: number; lines: string[] }

const most = 1500; // differences that are looked for; beyond them all between is replaced

/** Myers' greedy algorithm over what is left between common beginnings and ends. */
export function lines(a: string[], b: string[]): string[] {
	let head = 0, tail = 0;
	while (head < a.length && head < b.length && a[head] === b[head]) head++;
	while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
	const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail);
	const mid = between(x, y) ?? [...x.map((l) => "-" + l), ...y.map((l) => "+" + l)];
	return [...a.slice(0, head).map((l) => " " + l), ...mid, ...(tail ? a.slice(-tail) : []).map((l) => " " + l)];
}

function between(a: string[], b: string[]): string[] | null {
	const far = new Map<number, number>([[1, 0]]), trace: Map<number, number>[] = [];
	for (let d = 0; d <= Math.min(most, a.length + b.length); d++) {
		trace.push(new Map(far));
		for (let k = -d; k <= d; k += 2) {
			let x = k === -d || k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1) ? far.get(k + 1) ?? 0 : (far.get(k - 1) ?? 0) + 1;
			while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
			far.set(k, x);
			if (x >= a.length && x - k >= b.length) return back(a, b, trace);
		}
	}
	return null;
}

function back(a: string[], b: string[], trace: Map<number, number>[]): string[] {
	const out: string[] = [];
	let x = a.length, y = b.length;
	for (let d = trace.length - 1; d >= 0; d--) {
		const far = trace[d]!, k = x - y;
		const before = k === -d || k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1) ? k + 1 : k - 1;
		const px = far.get(before) ?? 0, py = px - before;
		while (x > px && y > py && x > 0 && y > 0) out.push(" " + a[--x]), y--;
		if (d > 0) x === px ? out.push("+" + b[--y]) : out.push("-" + a[--x]);
	}
	return out.reverse();
}

/** What changed, with three lines around it. */
export function hunks(before: string, after: string): Hunk[] {
	const split = (t: string) => (t === "" ? [] : t.replace(/\n$/, "").split("\n"));
	const all = lines(split(before), split(after)), near = new Set<number>();
	all.forEach((l, i) => {
		if (l[0] !== " ") for (let j = i - 3; j <= i + 3; j++) near.add(j);
	});
	const out: Hunk[] = [];
	let line = 1;
	all.forEach((l, i) => {
		if (near.has(i)) {
			if (!near.has(i - 1) || !out.length) out.push({ line, lines: [] });
			out.at(-1)!.lines.push(l);
		}
		if (l[0] !== "-") line++;
	});
	return out;
}
