/** The list of entities, and the details of the selected one. */
import { spanKey } from "./decode.js";
import { element } from "./labels.js";
import { FLOOR } from "./api.js";

const OTHER_SPANS = 4;
const byId = (id) => document.getElementById(id);

export class Sidebar {
  /**
   * actions: select(key), close(), relabel(key, label), relabelByNumber(key, number), replace(key, span),
   * moveEdge(key, edge, step, byCharacter), remove(key), page(step), chooseLabel(key)
   */
  constructor(styleOf, actions) {
    this.styleOf = styleOf;
    this.actions = actions;
    this.list = byId("list");
    this.entities = [];
    this.selected = null;
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.actions.select(option.dataset.span);
    });
    this.list.addEventListener("focus", () => {
      const isByKeyboard = this.list.matches(":focus-visible");
      if (isByKeyboard && this.selected === null && this.entities.length) this.actions.select(spanKey(this.entities[0]));
    });
    this.list.addEventListener("keydown", (event) => this.#key(event));
    byId("remove").addEventListener("click", () => this.actions.remove(this.selected));
    byId("details-close").addEventListener("click", () => this.actions.close());
    for (const button of document.querySelectorAll(".steppers [data-edge]")) {
      button.addEventListener("click", (event) =>
        this.actions.moveEdge(this.selected, button.dataset.edge, Number(button.dataset.step), event.altKey),
      );
    }
  }

  /** Show entities; `points` is the text they are in, `none` is said if there are none. */
  show(points, entities, none) {
    this.points = points;
    this.entities = entities;
    byId("count").textContent = entities.length || "";
    byId("list-hint").hidden = !entities.length;
    this.list.replaceChildren(...entities.map((one, number) => this.#option(one, number)));
    if (!entities.length) {
      const empty = element("li", none, "empty");
      empty.setAttribute("role", "option");
      empty.setAttribute("aria-disabled", "true");
      empty.setAttribute("aria-selected", "false");
      this.list.append(empty);
    }
  }

  /** Select an entity and show its details; `candidates` are all scores of the text. */
  select(key, candidates, labels) {
    this.selected = key;
    this.list.removeAttribute("aria-activedescendant");
    for (const option of this.list.querySelectorAll("[data-span]")) {
      const isSelected = option.dataset.span === key;
      option.setAttribute("aria-selected", isSelected);
      if (!isSelected) continue;
      this.list.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    }
    const entity = this.entities.find((one) => spanKey(one) === key);
    byId("details").hidden = !entity;
    if (entity) this.#details(entity, candidates, labels);
  }

  #option(entity, number) {
    const option = document.createElement("li");
    const { colour, line } = this.styleOf(entity.label);
    option.id = `entity-${number}`;
    option.className = `colour-${colour} line-${line}`;
    option.dataset.span = spanKey(entity);
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    option.append(
      element("span", entity.label, "label"),
      element("span", this.points.slice(entity.start, entity.end), "mention"),
      element("span", entity.corrected ? "edited" : entity.score.toFixed(2), "score"),
    );
    return option;
  }

  #details(entity, candidates, labels) {
    byId("details-title").textContent = this.points.slice(entity.start, entity.end);
    byId("details-where").textContent =
      `Characters ${entity.start} to ${entity.end}` + (entity.corrected ? ", corrected by you" : "");
    const same = new Map(candidates.filter((one) => spanKey(one) === spanKey(entity)).map((one) => [one.label, one.score]));
    const names = [...new Set([...labels, entity.label])].sort(
      (one, other) => (same.get(other) ?? 0) - (same.get(one) ?? 0),
    );
    byId("scores").replaceChildren(
      ...names.map((name) => this.#score(name, same.get(name), name === entity.label, candidates.length > 0)),
      ...this.#otherSpans(entity, candidates),
    );
  }

  /** One label with its score, which is also the button to choose it. */
  #score(name, score, isChosen, isKnown) {
    const button = this.#row(name, name, score === undefined ? (isKnown ? `< ${FLOOR}` : "–") : score.toFixed(2), score);
    button.setAttribute("aria-pressed", isChosen);
    button.addEventListener("click", () => this.actions.relabel(this.selected, name));
    return inItem(button);
  }

  /** The best other spans in the same place. */
  #otherSpans(entity, candidates) {
    const best = new Map();
    for (const one of candidates) {
      if (one.start >= entity.end || one.end <= entity.start || spanKey(one) === spanKey(entity)) continue;
      if ((best.get(spanKey(one))?.score ?? 0) < one.score) best.set(spanKey(one), one);
    }
    const spans = [...best.values()].sort((one, other) => other.score - one.score).slice(0, OTHER_SPANS);
    const title = element("li", "Other spans here", "subtitle");
    return spans.length ? [title, ...spans.map((one) => inItem(this.#otherSpan(one)))] : [];
  }

  #otherSpan(span) {
    const button = this.#row(span.label, this.points.slice(span.start, span.end), span.score.toFixed(2), span.score);
    button.querySelector(".label").append(element("small", span.label));
    button.title = `Use this span as ${span.label}`;
    button.addEventListener("click", () => this.actions.replace(this.selected, span));
    return button;
  }

  #row(label, text, number, score) {
    const button = document.createElement("button");
    const { colour, line } = this.styleOf(label);
    button.type = "button";
    button.className = `score-row colour-${colour} line-${line}`;
    const meter = element("span", "", "meter");
    meter.style.width = `${Math.round((score ?? 0) * 100)}%`;
    button.append(meter, element("span", text, "label"), element("span", number, "score"));
    return button;
  }

  #key(event) {
    const place = this.entities.findIndex((one) => spanKey(one) === this.selected);
    if (event.ctrlKey || event.metaKey || (event.key !== "Escape" && place < 0)) return;
    const choose = (number) => {
      const target = this.entities[Math.max(0, Math.min(number, this.entities.length - 1))];
      this.actions.select(spanKey(target));
    };
    const edge = event.shiftKey ? "start" : "end";
    const commands = {
      ArrowUp: () => choose(place - 1),
      ArrowDown: () => choose(place + 1),
      Home: () => choose(0),
      End: () => choose(this.entities.length - 1),
      ArrowLeft: () => this.actions.moveEdge(this.selected, edge, -1, event.altKey),
      ArrowRight: () => this.actions.moveEdge(this.selected, edge, 1, event.altKey),
      Delete: () => this.actions.remove(this.selected),
      Backspace: () => this.actions.remove(this.selected),
      Enter: () => this.actions.chooseLabel(this.selected),
      Escape: () => this.actions.close(),
      j: () => this.actions.page(1),
      k: () => this.actions.page(-1),
    };
    const command = /^[1-9]$/.test(event.key)
      ? () => this.actions.relabelByNumber(this.selected, Number(event.key))
      : commands[event.key];
    if (!command) return;
    event.preventDefault();
    command();
  }
}

function inItem(button) {
  const item = document.createElement("li");
  item.append(button);
  return item;
}
