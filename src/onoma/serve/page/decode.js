/**
 * Decoding: which candidates are entities. The same as onoma.decoding.decode, so that thresholds and overlap can be
 * changed without asking the service again.
 */
import { compareStrings } from "./offsets.js";

/**
 * The entities among candidates, sorted by start and end.
 *
 * A candidate is {start, end, label, score, rank, preference}. Those that reach `thresholdOf(candidate)` are
 * visited by falling rank and kept unless they conflict with one that was kept before. A span that is kept is reported
 * with the label that has the highest preference among those that reached their thresholds.
 */
export function decode(candidates, thresholdOf, overlap) {
  const reached = candidates.filter((one) => Math.fround(one.score) >= Math.fround(thresholdOf(one)));
  const kept = [];
  for (const one of reached.toSorted(bestFirst)) {
    if (!kept.some((other) => conflicts(one, other, overlap))) kept.push(one);
  }
  const preferred = new Map();
  for (const one of reached) {
    const best = preferred.get(spanKey(one));
    if (best === undefined || byPreference(one, best) < 0) preferred.set(spanKey(one), one);
  }
  return kept
    .map((one) => preferred.get(spanKey(one)))
    .sort((one, other) => one.start - other.start || one.end - other.end);
}

/** Whether two spans exclude each other; a span has only one label. */
export function conflicts(one, other, overlap) {
  if (one.start === other.start && one.end === other.end) return true;
  if (overlap === "any" || one.end <= other.start || other.end <= one.start) return false;
  return overlap === "flat" || !(contains(one, other) || contains(other, one));
}

/** A string that is the same for entities of the same span. */
export const spanKey = (one) => `${one.start}-${one.end}`;

const contains = (one, other) => one.start <= other.start && one.end >= other.end;

const bestFirst = (one, other) =>
  other.rank - one.rank ||
  one.start - other.start ||
  one.end - other.end ||
  compareStrings(one.label, other.label);

const byPreference = (one, other) =>
  other.preference - one.preference || compareStrings(one.label, other.label);
