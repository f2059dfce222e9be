/**
 * The text with its entities: one paragraph per line of the text, a <mark> around each entity, and below each line of
 * words one bar with a name per entity, in lanes, so that nested and crossing entities never cover each other.
 */
import { nest } from "./nesting.js";
import { spanKey } from "./decode.js";

const LANE = 19; // height of a bar and its name
const LINE = 30; // height of a line without bars; the same in style.css
const GAP = 5; // behind a name
const AT_ONCE = 80; // paragraphs that are laid out without waiting until they are seen

export class Highlighter {
  /** `styleOf(label)` gives the number of the colour and of the line style. */
  constructor(container, styleOf) {
    this.container = container;
    this.styleOf = styleOf;
    this.offsets = new WeakMap(); // text nodes and paragraphs -> their UTF-16 index
    this.blocks = [];
    this.seen = new IntersectionObserver((entries) => this.#layoutSeen(entries), { rootMargin: "800px" });
    this.width = 0;
    new ResizeObserver(() => this.#resized()).observe(container);
    this.pen = document.createElement("canvas").getContext("2d");
  }

  /** Show a text, given as CodePoints, with its entities. */
  show(points, entities) {
    this.points = points;
    this.spans = entities.map((entity) => ({
      entity,
      key: spanKey(entity),
      start: points.toUtf16(entity.start),
      end: points.toUtf16(entity.end),
    }));
    this.seen.disconnect();
    const spans = spansByLine(this.spans, points.text);
    this.blocks = [...lines(points.text)].map(([start, end], number) => this.#block(start, end, spans[number]));
    this.container.replaceChildren(...this.blocks.map((block) => block.paragraph));
    this.#layout(this.blocks.slice(0, AT_ONCE));
    for (const block of this.blocks.slice(AT_ONCE)) this.seen.observe(block.paragraph);
  }

  /** Mark one entity as selected, with handles at its edges; none for null. */
  select(key) {
    this.selected = key;
    for (const element of this.container.querySelectorAll("[data-span]")) {
      element.classList.toggle("selected", element.dataset.span === key);
    }
    for (const handle of this.container.querySelectorAll(".handle")) handle.remove();
    if (key === null) return;
    const bars = this.container.querySelectorAll(`.bar[data-span="${key}"]`);
    if (!bars.length) return;
    this.#handle(bars[0], "start");
    this.#handle(bars[bars.length - 1], "end");
  }

  /** Scroll an entity into view. */
  reveal(key) {
    const mark = this.container.querySelector(`mark[data-span="${key}"]`);
    mark?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** The UTF-16 index of a DOM position inside the container, or null. */
  indexAt(node, offset) {
    if (!this.container.contains(node)) return null;
    if (this.offsets.has(node) && node.nodeType === Node.TEXT_NODE) return this.offsets.get(node) + offset;
    if (node === this.container) {
      const block = this.blocks[offset];
      return block ? block.start : this.points.text.length;
    }
    const paragraph = node.closest?.("p") ?? node.parentElement.closest("p");
    const block = this.blocks.find((one) => one.paragraph === paragraph);
    if (!block) return null;
    if (!block.content.contains(node)) return node === paragraph && offset === 0 ? block.start : block.end;
    const before = document.createRange();
    before.setStart(block.content, 0);
    before.setEnd(node, offset);
    return block.start + before.toString().length;
  }

  /** The UTF-16 index below a point of the window, or null. */
  indexAtPoint(x, y) {
    if (document.caretPositionFromPoint) {
      const caret = document.caretPositionFromPoint(x, y);
      return caret && this.indexAt(caret.offsetNode, caret.offset);
    }
    const range = document.caretRangeFromPoint?.(x, y);
    return range ? this.indexAt(range.startContainer, range.startOffset) : null;
  }

  /** The DOM position of a UTF-16 index: [node, offset]. */
  positionAt(index) {
    const block = this.blocks.findLast((one) => one.start <= index) ?? this.blocks[0];
    const walker = document.createTreeWalker(block.content, NodeFilter.SHOW_TEXT);
    let last = null;
    while (walker.nextNode()) {
      last = walker.currentNode;
      const start = this.offsets.get(last);
      if (index <= start + last.length) return [last, Math.max(0, index - start)];
    }
    return last ? [last, last.length] : [block.content, 0];
  }

  #block(start, end, spans) {
    const paragraph = document.createElement("p");
    paragraph.dir = "auto";
    const content = document.createElement("span");
    const block = { start, end, paragraph, content, marks: new Map() }; // span -> its <mark> elements
    paragraph.append(content);
    const stack = [content];
    for (const part of nest(spans, start, end)) {
      if (part.close) stack.pop();
      else if (part.open) {
        const mark = this.#mark(part.open);
        block.marks.set(part.open, [...(block.marks.get(part.open) ?? []), mark]);
        stack.at(-1).append(mark);
        stack.push(mark);
      } else {
        const node = document.createTextNode(this.points.text.slice(...part.text));
        this.offsets.set(node, part.text[0]);
        stack.at(-1).append(node);
      }
    }
    if (start === end) content.append(document.createElement("br"));
    return block;
  }

  #mark(span) {
    const mark = document.createElement("mark");
    mark.dataset.span = span.key;
    const score = span.entity.corrected ? "added by you" : span.entity.score.toFixed(2);
    mark.title = `${span.entity.label}, ${score}`;
    this.#style(mark, span);
    return mark;
  }

  #style(element, span) {
    const { colour, line } = this.styleOf(span.entity.label);
    element.classList.add(`colour-${colour}`, `line-${line}`);
    if (span.entity.corrected) element.classList.add("corrected");
  }

  #layoutSeen(entries) {
    const seen = new Set(entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target));
    this.#layout(this.blocks.filter((block) => seen.has(block.paragraph)));
    for (const paragraph of seen) this.seen.unobserve(paragraph);
  }

  #resized() {
    const { width } = this.container.getBoundingClientRect();
    if (width === this.width) return;
    this.width = width;
    this.relayout();
  }

  /** Place all bars again, as after a change of size or font. */
  relayout() {
    this.#layout(this.blocks.filter((block) => block.isLaidOut));
    if (this.selected) this.select(this.selected);
  }

  /** Choose lanes, make room for them, and draw. Reading and writing of the layout alternate for all blocks at once. */
  #layout(blocks) {
    const marked = blocks.filter((block) => block.marks.size);
    const font = getComputedStyle(this.container).getPropertyValue("--name-font");
    this.pen.font = font || "600 11px sans-serif";
    const lanes = marked.map((block) => this.#lanes(block));
    marked.forEach((block, number) => this.#makeRoom(block, lanes[number]));
    const pieces = marked.map((block) => this.#pieces(block));
    const frames = marked.map((block) => block.paragraph.getBoundingClientRect());
    marked.forEach((block, number) => this.#draw(block, pieces[number], lanes[number], frames[number]));
    for (const block of blocks) block.isLaidOut = true;
  }

  /** Room for one lane below every line, and for more where an entity that starts or ends there needs it. */
  #makeRoom(block, lanes) {
    for (const room of block.content.querySelectorAll(".room")) room.remove();
    block.paragraph.classList.add("marked");
    block.paragraph.style.lineHeight = "";
    for (const [span, marks] of block.marks) {
      const own = lanes.get(span) ?? [0]; // nothing is drawn while the text is hidden
      if (Math.max(...own) === 0) continue;
      marks[0].prepend(room(own[0]));
      if (own.length > 1) marks.at(-1).append(room(own.at(-1)));
      if (own.length > 2) block.paragraph.style.lineHeight = `${LINE + (Math.max(...own) + 1) * LANE}px`;
    }
  }

  /** The parts of entities on each line of a paragraph, as drawn now: {span, line, left, right, bottom, isFirst}. */
  #pieces(block) {
    const found = [];
    for (const [span, marks] of block.marks) {
      const lines = new Map();
      for (const mark of marks) {
        for (const { left, right, bottom } of mark.getClientRects()) {
          const line = Math.round(bottom);
          const known = lines.get(line) ?? { span, line, left, right, bottom };
          lines.set(line, { ...known, left: Math.min(known.left, left), right: Math.max(known.right, right) });
        }
      }
      const parts = [...lines.values()].sort((one, other) => one.line - other.line);
      const isStart = span.start >= block.start;
      parts.forEach((part, number) => found.push({ ...part, isFirst: isStart && number === 0, number }));
    }
    return found;
  }

  /** The lanes of the pieces of each span: short entities lie next to the text, others below whatever they would touch. */
  #lanes(block) {
    const chosen = new Map();
    const taken = new Map(); // line and lane -> pieces
    const pieces = this.#pieces(block).sort(
      (one, other) => one.right - one.left - (other.right - other.left) || one.left - other.left,
    );
    for (const piece of pieces) {
      const name = piece.isFirst ? this.#nameWidth(piece.span.entity.label) + GAP : 0;
      const [left, right] = [piece.left, Math.max(piece.right, piece.left + name)];
      let lane = 0;
      const isFree = () =>
        (taken.get(`${piece.line}/${lane}`) ?? []).every(([from, to]) => right <= from + 0.5 || to <= left + 0.5);
      while (!isFree()) lane++;
      const key = `${piece.line}/${lane}`;
      if (!taken.has(key)) taken.set(key, []);
      taken.get(key).push([left, right]);
      if (!chosen.has(piece.span)) chosen.set(piece.span, []);
      chosen.get(piece.span)[piece.number] = lane;
    }
    return chosen;
  }

  #nameWidth(label) {
    return Math.min(this.pen.measureText(label).width + 2, 160);
  }

  #draw(block, pieces, lanes, frame) {
    const layer = document.createElement("span");
    layer.className = "lanes";
    layer.setAttribute("aria-hidden", "true");
    for (const piece of pieces) {
      const lane = lanes.get(piece.span)?.[piece.number] ?? 0;
      const bar = document.createElement("span");
      bar.className = "bar";
      bar.dataset.span = piece.span.key;
      bar.dataset.lane = lane;
      bar.style.left = `${piece.left - frame.left + 1}px`;
      bar.style.width = `${piece.right - piece.left - 2}px`; // neighbours stay apart
      bar.style.top = `${piece.bottom - frame.top + 2 + lane * LANE}px`;
      this.#style(bar, piece.span);
      if (piece.isFirst) {
        const name = document.createElement("span");
        name.className = "name";
        name.dir = "auto";
        name.textContent = piece.span.entity.label;
        bar.append(name);
      }
      layer.append(bar);
    }
    block.layer?.remove();
    block.layer = layer;
    block.paragraph.append(layer);
  }

  #handle(bar, edge) {
    const handle = document.createElement("span");
    handle.className = `handle ${edge}`;
    handle.dataset.edge = edge;
    handle.title = `Drag to move the ${edge}`;
    bar.append(handle);
  }
}

function* lines(text) {
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
    yield [start, end];
    start = end + 1;
  }
  yield [start, text.length];
}

/** The spans that each line has a part of. */
function spansByLine(spans, text) {
  const starts = Array.from(lines(text), ([start]) => start);
  const found = starts.map(() => []);
  let first = 0;
  for (const span of spans) {
    while (starts[first + 1] <= span.start) first++;
    for (let line = first; starts[line] < span.end; line++) found[line].push(span);
  }
  return found;
}

/** An empty element that makes its line higher, at its bottom. */
function room(lanes) {
  const made = document.createElement("span");
  made.className = "room";
  made.style.verticalAlign = `${-lanes * LANE}px`;
  return made;
}
