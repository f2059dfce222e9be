/**
 * Words: where mentions usually start and end. Single characters in scripts without spaces, letters and digits
 * elsewhere; a simpler form of onoma.text.words, for selecting and for CoNLL columns.
 */

const UNSPACED = ["Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar"]
  .map((script) => `\\p{Script=${script}}`)
  .join("");
const PICTURE = "\\p{Extended_Pictographic}[\\u{1f3fb}-\\u{1f3ff}\\ufe0f]*";
const INSIDE = `(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}_]`;
const WORD = new RegExp(
  [
    `${PICTURE}(?:\\u200d${PICTURE})*`,
    "[\\u{1f1e6}-\\u{1f1ff}]{2}",
    `(?:${INSIDE}|(?<=\\p{Nd})[.,:](?=\\p{Nd}))+`,
    "\\S\\p{M}*",
  ].join("|"),
  "gu",
);

/** The words of a text, as pairs of UTF-16 indices. Those of the last text are kept, for drags and key strokes. */
export function findWords(text) {
  if (text !== last.text) {
    last.text = text;
    last.words = Array.from(text.matchAll(WORD), (match) => [match.index, match.index + match[0].length]);
  }
  return last.words;
}

const last = { text: "", words: [] };

/** A selection without surrounding white space; with `whole`, it also contains its first and last word completely. */
export function snapSelection(text, start, end, whole) {
  while (start < end && /\s/.test(text[start])) start++;
  while (end > start && /\s/.test(text[end - 1])) end--;
  if (!whole || start === end) return [start, end];
  const touched = findWords(text).filter(([first, last]) => first < end && last > start);
  return [Math.min(start, touched[0][0]), Math.max(end, touched.at(-1)[1])];
}

/** The next place before or after an index where a mention can start, or end. */
export function nextEdge(text, index, step, isStart, whole) {
  if (!whole) return nextCharacter(text, index, step);
  const edges = findWords(text).map((word) => word[isStart ? 0 : 1]);
  return (step > 0 ? edges.find((edge) => edge > index) : edges.findLast((edge) => edge < index)) ?? index;
}

/** The place nearest to an index where a mention can start, or end. */
export function nearestEdge(text, index, isStart, whole) {
  if (!whole) return index;
  let nearest = index;
  for (const word of findWords(text)) {
    const edge = word[isStart ? 0 : 1];
    if (nearest === index || Math.abs(edge - index) < Math.abs(nearest - index)) nearest = edge;
    if (edge >= index) break;
  }
  return nearest;
}

/** The index one character further, where a character is what a reader sees as one. */
export function nextCharacter(text, index, step) {
  const near = text.slice(Math.max(0, index - 64), index + 64);
  const offset = index - Math.max(0, index - 64);
  const starts = [...new Intl.Segmenter().segment(near)].map((part) => part.index).concat(near.length);
  const found = step > 0 ? starts.find((start) => start > offset) : starts.findLast((start) => start < offset);
  return found === undefined ? index : index - offset + found;
}
