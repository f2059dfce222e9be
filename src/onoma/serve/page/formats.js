/** Results as files. A document is {text, points, entities}; entities are in code points. */
import { conflicts } from "./decode.js";
import { nest } from "./nesting.js";
import { findWords } from "./words.js";

/** Something that the user can do otherwise. */
export class FormatError extends Error {
  constructor(message, fix) {
    super(message);
    this.fix = fix;
  }
}

/** The formats by name: extension, media type, and a function from documents to a string. */
export const FORMATS = {
  JSON: { extension: "json", type: "application/json", write: toJson },
  JSONL: { extension: "jsonl", type: "application/jsonl", write: toJsonLines },
  CoNLL: { extension: "conll", type: "text/plain", write: toConll },
  HTML: { extension: "html", type: "text/html", write: toHtml },
};

/** Documents for training: the canonical format, without scores. */
export function toTraining(documents) {
  return documents
    .map(({ text, entities }) => {
      const spans = entities.map(({ start, end, label }) => ({ start, end, label }));
      return JSON.stringify({ text, entities: spans }) + "\n";
    })
    .join("");
}

function record({ text, points, entities }) {
  const spans = entities.map(({ start, end, label, score }) => ({
    start,
    end,
    text: points.slice(start, end),
    label,
    score: Math.round(score * 1e4) / 1e4,
  }));
  return { text, entities: spans };
}

function toJson(documents) {
  return JSON.stringify(documents.map(record), null, 2) + "\n";
}

function toJsonLines(documents) {
  return documents.map((one) => JSON.stringify(record(one)) + "\n").join("");
}

/** BIO columns with the text in a comment, as `onoma convert` reads and writes them. */
function toConll(documents) {
  return documents.map(conllSentence).join("");
}

function conllSentence({ text, points, entities }) {
  const spans = entities.map((one) => ({
    start: points.toUtf16(one.start),
    end: points.toUtf16(one.end),
    label: one.label,
  }));
  checkColumns(text, spans);
  const edges = new Set(spans.flatMap((span) => [span.start, span.end]));
  const rows = findWords(text).flatMap((word) => cut(word, edges));
  const tags = rows.map(([start, end]) => {
    const span = spans.find((one) => one.start < end && one.end > start);
    return span === undefined ? "O" : `${rows.some(([other]) => other < start && other >= span.start) ? "I" : "B"}-${span.label}`;
  });
  const columns = rows.map(([start, end], number) => `${text.slice(start, end)}\t${tags[number]}\n`);
  return `# text = ${JSON.stringify(text)}\n${columns.join("")}\n`;
}

function checkColumns(text, spans) {
  const fix = "set overlap to flat, or save JSONL";
  spans.forEach((one, number) => {
    const other = spans.slice(number + 1).find((each) => conflicts(one, each, "flat"));
    if (other) {
      const [first, second] = [one, other].map((span) => `“${text.slice(span.start, span.end)}” (${span.label})`);
      throw new FormatError(`CoNLL columns cannot hold mentions that overlap, such as ${first} and ${second}`, fix);
    }
    if (/[\t\n\r]/.test(one.label)) throw new FormatError("a label contains a tab or a line break", "rename the label");
  });
}

/** A word, split where a mention starts or ends inside it. */
function cut([start, end], edges) {
  const inner = [...edges].filter((edge) => edge > start && edge < end).sort((one, other) => one - other);
  const places = [start, ...inner, end];
  return places.slice(1).map((place, number) => [places[number], place]);
}

/** A page of its own, readable without scripts. */
function toHtml(documents) {
  const labels = [...new Set(documents.flatMap((one) => one.entities.map((entity) => entity.label)))];
  const hue = (label) => Math.round(labels.indexOf(label) * 137.508) % 360;
  const legend = labels.map((label) => `<li><mark style="--hue: ${hue(label)}">${escape(label)}</mark></li>`);
  const articles = documents.map((one) => `<article dir="auto"><p>${highlighted(one, hue)}</p></article>`);
  return `<!DOCTYPE html>
<html lang="">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Entities</title>
<style>${HTML_STYLE}</style>
</head>
<body>
<main>
<ul aria-label="Labels">
${legend.join("\n")}
</ul>
${articles.join("\n")}
</main>
</body>
</html>
`;
}

function highlighted({ text, points, entities }, hue) {
  const spans = entities.map((one) => ({ ...one, start: points.toUtf16(one.start), end: points.toUtf16(one.end) }));
  let result = "";
  for (const part of nest(spans, 0, text.length)) {
    if (part.close) result += "</mark>";
    else if (part.text) result += escape(text.slice(...part.text));
    else {
      const label = escape(part.open.label);
      const name = part.continued ? "" : `<span>${label}</span>`;
      result += `<mark style="--hue: ${hue(part.open.label)}" title="${label}, ${part.open.score.toFixed(2)}">${name}`;
    }
  }
  return result;
}

const escape = (text) =>
  text.replace(/[&<>"']/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[sign]);

const HTML_STYLE = `
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --tone: 70% 86% }
@media (prefers-color-scheme: dark) { :root { --ink: #f2f2f2; --paper: #161616; --tone: 45% 26% } }
body { background: var(--paper); color: var(--ink); font: 1.05rem/2.1 system-ui, sans-serif; margin: 2rem auto;
  max-width: 50rem; padding: 0 1rem }
ul { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; padding: 0 }
article { border-top: 1px solid #8886; padding: .5rem 0 }
p { margin: .5rem 0; overflow-wrap: anywhere; white-space: pre-wrap }
mark { background: hsl(var(--hue) var(--tone)); border-radius: .3em; color: inherit; outline: 1px solid #8888;
  padding: .15em .3em }
mark span { font-size: .7em; font-weight: 600; margin-inline-end: .4em; user-select: none }
`;
