/**
 * Corrections of one text: spans that the user added, and spans that the user removed. They are kept apart from what
 * the model found, so that they outlive a new threshold, new labels and small changes of the text. Values never change.
 */
import { conflicts, spanKey } from "./decode.js";

/**
 * added: spans with labels, which win over what the model found
 * removed: spans that are not shown, whatever their label
 * checked: somebody looked at this text, so it belongs into training data
 * complete: the annotation was read from a file; what the model finds is not added to it
 */
export const NO_CORRECTIONS = Object.freeze({ added: [], removed: [], checked: false, complete: false });

/** Add a span, or give a span another label; spans of the user that it excludes are dropped. */
export function addSpan(corrections, { start, end, label }, overlap) {
  const span = { start, end, label };
  const others = corrections.added.filter((one) => !conflicts(one, span, overlap));
  return { ...corrections, added: [...others, span], checked: true };
}

/** Remove an entity, whoever found it. */
export function removeSpan(corrections, { start, end }) {
  const isOther = (one) => one.start !== start || one.end !== end;
  return {
    ...corrections,
    added: corrections.added.filter(isOther),
    removed: [...corrections.removed.filter(isOther), { start, end }],
    checked: true,
  };
}

/** Move the edges of an entity, or change its label. */
export function replaceSpan(corrections, entity, span, overlap) {
  return addSpan(removeSpan(corrections, entity), span, overlap);
}

/** The entities of a text: what the model found, corrected. */
export function applyCorrections(found, corrections, overlap) {
  const { added, removed, complete } = corrections;
  const hidden = new Set(removed.map(spanKey));
  const isShown = (one) => !hidden.has(spanKey(one)) && !added.some((span) => conflicts(one, span, overlap));
  const own = added.map((span) => ({ ...span, score: 1, corrected: true }));
  return [...(complete ? [] : found.filter(isShown)), ...own].sort(
    (one, other) => one.start - other.start || one.end - other.end,
  );
}

/** The corrections that still fit after the text was changed: those before the change, and behind it, moved. */
export function carryOver(corrections, before, after) {
  const [old, changed] = [[...before], [...after]];
  const shortest = Math.min(old.length, changed.length);
  let prefix = 0;
  while (prefix < shortest && old[prefix] === changed[prefix]) prefix++;
  let suffix = 0;
  while (suffix < shortest - prefix && old.at(-1 - suffix) === changed.at(-1 - suffix)) suffix++;
  const move = changed.length - old.length;
  const carried = (spans) =>
    spans
      .filter((one) => one.end <= prefix || one.start >= old.length - suffix)
      .map((one) => (one.end <= prefix ? one : { ...one, start: one.start + move, end: one.end + move }));
  return { ...corrections, added: carried(corrections.added), removed: carried(corrections.removed) };
}

/** The corrections of a part of the text, between two code points. */
export function cutOut(corrections, start, end) {
  const inside = (spans) =>
    spans
      .filter((one) => one.start >= start && one.end <= end)
      .map((one) => ({ ...one, start: one.start - start, end: one.end - start }));
  return { ...corrections, added: inside(corrections.added), removed: inside(corrections.removed) };
}

/** What was done, to be undone and done again. An entry is {text, before, after, what}. */
export class History {
  constructor() {
    this.done = [];
    this.undone = [];
  }

  push(entry) {
    this.done.push(entry);
    this.undone = [];
  }

  /** The entry to take back, or undefined. */
  undo() {
    const entry = this.done.pop();
    if (entry) this.undone.push(entry);
    return entry;
  }

  /** The entry to do again, or undefined. */
  redo() {
    const entry = this.undone.pop();
    if (entry) this.done.push(entry);
    return entry;
  }
}
