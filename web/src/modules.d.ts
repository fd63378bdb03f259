declare module "*.svg" {
	const text: string;
	export default text;
}
declare module "markdown-it" {
	export default class {
		constructor(options: object);
		parse(text: string, env: object): { type: string }[];
	}
}
