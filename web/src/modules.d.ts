declare module "markdown-it" {
	export default class {
		constructor(options: object);
		parse(text: string, env: object): { type: string }[];
	}
}
