/**
 * Nesting: a text with spans as the parts of nested elements. Elements cannot cross, so a span that crosses the end of
 * the element in which it starts is split there.
 */

/**
 * The parts of text[from:to]: {text: [start, end]}, {open: span, continued} and {close: true}.
 * All offsets, those of the spans included, must be in the same unit.
 */
export function* nest(spans, from, to) {
  const waiting = spans
    .filter((span) => span.start < to && span.end > from)
    .map((span) => ({
      span,
      start: Math.max(span.start, from),
      end: Math.min(span.end, to),
      continued: span.start < from,
    }))
    .sort(outerFirst);
  const open = [];
  let position = from;
  while (waiting.length || open.length) {
    const parent = open.at(-1);
    if (parent && (!waiting.length || parent.end <= waiting[0].start)) {
      if (position < parent.end) yield { text: [position, parent.end] };
      yield { close: true };
      position = open.pop().end;
      continue;
    }
    const piece = waiting.shift();
    if (position < piece.start) yield { text: [position, piece.start] };
    position = piece.start;
    if (parent && piece.end > parent.end) {
      const rest = { ...piece, start: parent.end, continued: true };
      const place = waiting.findIndex((other) => outerFirst(rest, other) < 0);
      waiting.splice(place < 0 ? waiting.length : place, 0, rest);
      piece.end = parent.end;
    }
    yield { open: piece.span, continued: piece.continued };
    open.push(piece);
  }
  if (position < to) yield { text: [position, to] };
}

const outerFirst = (one, other) => one.start - other.start || other.end - one.end;
