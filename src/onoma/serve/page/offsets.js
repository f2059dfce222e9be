/**
 * Offsets. The service counts code points, JavaScript counts UTF-16 units, of which emoji and rare Chinese characters
 * take two. Everything that is kept, sent or saved is in code points; only the DOM is addressed in UTF-16 units.
 */

/** A text that can be addressed in code points. */
export class CodePoints {
  constructor(text) {
    this.text = text;
    this.pairs = []; // UTF-16 indices of the characters that take two units
    for (let index = 0; index < text.length - 1; index++) {
      if (isHigh(text.charCodeAt(index)) && isLow(text.charCodeAt(index + 1))) this.pairs.push(index++);
    }
    this.length = text.length - this.pairs.length;
  }

  /** The UTF-16 index of a code point. */
  toUtf16(point) {
    return point + count(this.pairs.length, (number) => this.pairs[number] - number < point);
  }

  /** The code point at a UTF-16 index; inside a character of two units, the index of this character. */
  toPoint(index) {
    return index - count(this.pairs.length, (number) => this.pairs[number] < index);
  }

  /** The text between two code points. */
  slice(start, end) {
    return this.text.slice(this.toUtf16(start), this.toUtf16(end));
  }
}

/** Strings in the order of their code points, as Python sorts them. */
export function compareStrings(one, other) {
  if (one === other) return 0;
  const [left, right] = [[...one], [...other]];
  const place = left.findIndex((character, index) => character !== right[index]);
  if (place < 0 || right[place] === undefined) return left.length - right.length;
  return left[place].codePointAt(0) - right[place].codePointAt(0);
}

/** How many of the first numbers fulfil a condition that holds up to some number and then no longer. */
function count(length, holds) {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

const isHigh = (unit) => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit) => unit >= 0xdc00 && unit < 0xe000;
