/**
 * Corrections in the text: a cursor that the keyboard moves, selections that become entities, edges that are dragged.
 * The editor knows UTF-16 indices only; `actions` receive them.
 */
import { nearestEdge, nextCharacter, nextEdge, snapSelection } from "./words.js";

export class Editor {
  /**
   * actions: select(key or null), open(key), label(start, end, anchor, number or null), relabel(key, number),
   * preview(key, start, end), move(key, start, end), remove(key), page(step), toggleChecked()
   */
  constructor(highlighter, actions) {
    this.view = highlighter;
    this.actions = actions;
    this.anchor = this.cursor = 0;
    const { container } = highlighter;
    container.addEventListener("pointerdown", (event) => this.#pointerDown(event));
    container.addEventListener("pointermove", (event) => this.#pointerMove(event));
    container.addEventListener("pointerup", (event) => this.#pointerUp(event));
    container.addEventListener("pointercancel", () => (this.drag = null));
    container.addEventListener("click", (event) => this.#click(event));
    document.addEventListener("selectionchange", () => this.#selectedByTouch());
    container.addEventListener("keydown", (event) => this.#key(event));
    container.addEventListener("focus", () => {
      this.isByKeyboard = container.matches(":focus-visible");
      this.#drawCursor();
    });
    container.addEventListener("blur", () => this.caret.remove());
    this.caret = document.createElement("span");
    this.caret.className = "caret";
    this.caret.setAttribute("aria-hidden", "true");
  }

  get text() {
    return this.view.points.text;
  }

  /** Put the cursor at an index, or select up to it. */
  setCursor(index, isExtending = false) {
    this.cursor = Math.max(0, Math.min(index, this.text.length));
    if (!isExtending) this.anchor = this.cursor;
    const [from, to] = [this.view.positionAt(this.anchor), this.view.positionAt(this.cursor)];
    getSelection().setBaseAndExtent(...from, ...to);
    this.#drawCursor();
  }

  /** After the text was drawn anew: the cursor stays, the selection is gone. */
  refresh() {
    this.anchor = this.cursor = Math.min(this.cursor, this.text.length);
    this.#drawCursor();
  }

  /** The entity at an index: the selected one, else the smallest one; undefined if there is none. */
  spanAt(index) {
    const here = this.view.spans.filter((span) => span.start <= index && index <= span.end);
    const isBehind = (span) => Number(span.end === index);
    return (
      here.find((span) => span.key === this.view.selected) ??
      here.sort((one, other) => isBehind(one) - isBehind(other) || one.end - one.start - (other.end - other.start))[0]
    );
  }

  #drawCursor() {
    this.caret.remove();
    if (!this.isByKeyboard || this.cursor !== this.anchor || document.activeElement !== this.view.container) return;
    const range = document.createRange();
    const [node, offset] = this.view.positionAt(this.cursor);
    range.setStart(node, offset);
    const place = range.getClientRects()[0] ?? node.parentElement.getBoundingClientRect();
    const frame = this.view.container.getBoundingClientRect();
    this.view.container.append(this.caret);
    this.caret.style.left = `${place.left - frame.left - this.view.container.clientLeft + this.view.container.scrollLeft}px`;
    this.caret.style.top = `${place.top - frame.top - this.view.container.clientTop + this.view.container.scrollTop}px`;
    this.caret.style.height = `${Math.min(place.height, 28)}px`;
    this.caret.scrollIntoView({ block: "nearest" });
  }

  #pointerDown(event) {
    const handle = event.target.closest(".handle");
    if (handle) {
      event.preventDefault();
      const span = this.view.spans.find((one) => one.key === handle.parentElement.dataset.span);
      this.drag = { span, isStart: handle.dataset.edge === "start", start: span.start, end: span.end };
      this.view.container.setPointerCapture(event.pointerId);
      this.view.container.classList.add("dragging");
      return;
    }
    this.isByKeyboard = false;
    this.isTouch = event.pointerType === "touch";
    this.pressed = [event.clientX, event.clientY];
  }

  #pointerMove(event) {
    if (!this.drag) return;
    const index = this.view.indexAtPoint(event.clientX, event.clientY);
    if (index === null) return;
    const { span, isStart } = this.drag;
    const edge = nearestEdge(this.text, index, isStart, !event.altKey);
    const start = isStart ? Math.min(edge, this.drag.end - 1) : this.drag.start;
    const end = isStart ? this.drag.end : Math.max(edge, this.drag.start + 1);
    if (start === this.drag.start && end === this.drag.end) return;
    Object.assign(this.drag, { start, end });
    getSelection().setBaseAndExtent(...this.view.positionAt(start), ...this.view.positionAt(end));
    this.actions.preview(span.key, start, end);
  }

  #pointerUp(event) {
    if (this.drag) {
      const { span, start, end } = this.drag;
      this.drag = null;
      this.view.container.classList.remove("dragging");
      getSelection().removeAllRanges();
      this.isDragged = true; // a click follows
      if (start !== span.start || end !== span.end) this.actions.move(span.key, start, end);
    }
  }

  /** After a drag over text, a double click or Shift+click, label the selection; else select what was clicked. */
  #click(event) {
    if (this.isDragged) {
      this.isDragged = false;
      return;
    }
    const [x, y] = this.pressed ?? [0, 0];
    const hasMoved = Math.hypot(event.clientX - x, event.clientY - y) > 3;
    if ((hasMoved || event.detail > 1 || event.shiftKey) && this.#takeSelection(!event.altKey)) return;
    const key = event.target.closest("[data-span]")?.dataset.span ?? null;
    const index = this.view.indexAtPoint(event.clientX, event.clientY);
    if (index !== null) this.setCursor(index);
    this.actions.select(key);
  }

  /** Touch screens select by long presses and handles of their own; labels are offered when the selection rests. */
  #selectedByTouch() {
    clearTimeout(this.rest);
    if (this.isTouch) this.rest = setTimeout(() => this.#takeSelection(true), 700);
  }

  /** Offer labels for the selected text; false if there is none, or if it lies elsewhere. */
  #takeSelection(whole) {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return false;
    const range = selection.getRangeAt(0);
    const from = this.view.indexAt(range.startContainer, range.startOffset);
    const to = this.view.indexAt(range.endContainer, range.endOffset);
    if (from === null || to === null) return false;
    return this.#label(from, to, whole, null);
  }

  #label(from, to, whole, number) {
    this.isTouch = false;
    const [start, end] = snapSelection(this.text, Math.min(from, to), Math.max(from, to), whole);
    if (start === end) return false;
    [this.anchor, this.cursor] = [start, end];
    getSelection().setBaseAndExtent(...this.view.positionAt(start), ...this.view.positionAt(end));
    const range = getSelection().getRangeAt(0);
    this.caret.remove();
    this.actions.label(start, end, range.getBoundingClientRect(), number);
    return true;
  }

  #key(event) {
    if (event.isComposing || event.metaKey) return;
    this.isByKeyboard = true;
    const isHandled = this.#moveCursor(event) || (!event.ctrlKey && this.#command(event));
    if (isHandled) event.preventDefault();
  }

  #moveCursor(event) {
    const byWord = event.ctrlKey || event.altKey;
    const target = {
      ArrowLeft: () => this.#step(-1, byWord),
      ArrowRight: () => this.#step(1, byWord),
      ArrowUp: () => this.#line("backward", "line"),
      ArrowDown: () => this.#line("forward", "line"),
      Home: () => (event.ctrlKey ? 0 : this.#line("backward", "lineboundary")),
      End: () => (event.ctrlKey ? this.text.length : this.#line("forward", "lineboundary")),
    }[event.key];
    if (!target) return false;
    this.setCursor(target(), event.shiftKey);
    if (!event.shiftKey) this.actions.select(null);
    return true;
  }

  #step(direction, byWord) {
    if (!byWord) return nextCharacter(this.text, this.cursor, direction);
    const edge = nextEdge(this.text, this.cursor, direction, direction < 0, true);
    return edge === this.cursor ? (direction < 0 ? 0 : this.text.length) : edge;
  }

  /** Where the browser puts a cursor that moves to another line. */
  #line(direction, unit) {
    const selection = getSelection();
    selection.collapse(...this.view.positionAt(this.cursor));
    selection.modify("move", direction, unit);
    const index = this.view.indexAt(selection.focusNode, selection.focusOffset);
    return index ?? this.cursor;
  }

  #command(event) {
    const hasSelection = this.anchor !== this.cursor;
    const span = hasSelection ? undefined : this.spanAt(this.cursor);
    const number = /^[1-9]$/.test(event.key) ? Number(event.key) : null;
    if (hasSelection && (number || event.key === "Enter")) {
      return this.#label(this.anchor, this.cursor, !event.altKey, number);
    }
    if (span && number) this.actions.relabel(span.key, number);
    else if (span && event.key === "Enter") this.actions.open(span.key);
    else if (span && (event.key === "Delete" || event.key === "Backspace")) this.actions.remove(span.key);
    else if (event.key === "Escape") this.setCursor(this.cursor);
    else if (/^[np]$/i.test(event.key)) this.#jump(event.key.toLowerCase() === "n" ? 1 : -1);
    else if (/^[jk]$/i.test(event.key)) this.actions.page(event.key.toLowerCase() === "j" ? 1 : -1);
    else if (/^c$/i.test(event.key)) this.actions.toggleChecked();
    else return false;
    return true;
  }

  /** Go to the next or previous entity and show it. */
  #jump(step) {
    const { spans, selected } = this.view;
    const place = spans.findIndex((one) => one.key === selected);
    const near = step > 0 ? spans.find((one) => one.start >= this.cursor) : spans.findLast((one) => one.start < this.cursor);
    const span = place < 0 ? near : spans[place + step];
    if (!span) return;
    this.setCursor(span.start);
    this.actions.select(span.key);
  }
}
