// Markdown as tokens: a bundle of its own, which is loaded when the first text is shown.
import MarkdownIt from "markdown-it";

const parser = new MarkdownIt({ html: false, linkify: true, typographer: false, maxNesting: 40 });

export const parse = (text: string) => parser.parse(text, {});
