/** The labels: chips that can be added, described, moved and removed. */
import { makeLabel, splitLabels } from "./link.js";

const COLOURS = 6; // in style.css
const LINES = 3; // solid, dashed, dotted
const byId = (id) => document.getElementById(id);

export class LabelBar {
  /** `onChange(what)` is called with a sentence about each change. */
  constructor(onChange) {
    this.labels = [];
    this.counts = new Map();
    this.onChange = onChange;
    this.list = byId("chips");
    byId("add-label").addEventListener("submit", (event) => this.#add(event));
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => this.#click(event));
    this.#connectDialog();
  }

  /** Replace all labels. */
  set(labels) {
    const names = new Set();
    this.labels = labels.filter(({ name }) => !names.has(name) && names.add(name));
    this.render();
  }

  /** Add names that are not there yet. */
  include(names) {
    const known = new Set(this.labels.map((one) => one.name));
    const added = [...new Set(names)].filter((name) => !known.has(name)).map(makeLabel).filter(Boolean);
    if (added.length) this.set([...this.labels, ...added]);
    return added;
  }

  /** The colour and the line style of a label; more labels than colours get another line style. */
  styleOf(name) {
    const place = this.labels.findIndex((one) => one.name === name);
    const number = place < 0 ? this.labels.length : place;
    return { colour: number % COLOURS, line: Math.floor(number / COLOURS) % LINES };
  }

  /** Show how often each label was found. */
  count(entities) {
    this.counts = new Map();
    for (const { label } of entities) this.counts.set(label, (this.counts.get(label) ?? 0) + 1);
    for (const chip of this.list.querySelectorAll(".chip")) {
      chip.querySelector(".number").textContent = this.counts.get(chip.dataset.label) ?? "";
    }
  }

  render() {
    const focused = this.list.contains(document.activeElement);
    this.place = Math.min(this.place ?? 0, Math.max(0, this.labels.length - 1));
    this.list.replaceChildren(...this.labels.map((label, number) => this.#chip(label, number)));
    if (focused) this.#focus(this.place);
  }

  #chip(label, number) {
    const item = document.createElement("li");
    const { colour, line } = this.styleOf(label.name);
    const chip = document.createElement("button");
    chip.type = "button";
    chip.className = `chip colour-${colour} line-${line}`;
    chip.dataset.label = label.name;
    chip.tabIndex = number === this.place ? 0 : -1;
    chip.setAttribute("aria-describedby", "chip-hint");
    chip.title = label.description || "Click for description and examples";
    if (number < 9) chip.append(element("kbd", number + 1));
    chip.append(element("span", label.name, "label"));
    if (label.description || label.examples.length || label.threshold !== null) chip.append(element("span", "…", "more"));
    chip.append(element("span", this.counts.get(label.name) ?? "", "number"));
    const remove = element("button", "×", "remove");
    remove.type = "button";
    remove.tabIndex = -1;
    remove.setAttribute("aria-label", `Remove ${label.name}`);
    item.append(chip, remove);
    return item;
  }

  /** Add what is in the input field; returns the new labels. */
  takeInput() {
    const input = byId("new-label");
    const added = this.include(splitLabels(input.value));
    input.value = "";
    return added;
  }

  #add(event) {
    event.preventDefault();
    const added = this.takeInput();
    if (added.length) this.onChange(`Added ${added.map((one) => one.name).join(", ")}`);
  }

  #click(event) {
    const item = event.target.closest("li");
    if (!item) return;
    const number = [...this.list.children].indexOf(item);
    if (event.target.closest(".remove")) this.#remove(number);
    else if (event.target.closest(".chip")) this.#edit(number);
  }

  #key(event) {
    const number = [...this.list.children].indexOf(event.target.closest("li"));
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && event.shiftKey) this.#move(number, step);
    else if (step) this.#focus(number + step);
    else if (event.key === "Delete" || event.key === "Backspace") this.#remove(number);
    else return;
    event.preventDefault();
  }

  #focus(number) {
    const chips = this.list.querySelectorAll(".chip");
    if (number < 0 || number >= chips.length) return;
    this.place = number;
    chips.forEach((chip, index) => (chip.tabIndex = index === number ? 0 : -1));
    chips[number].focus();
  }

  #move(number, step) {
    const target = number + step;
    if (target < 0 || target >= this.labels.length) return;
    const moved = [...this.labels];
    moved.splice(target, 0, ...moved.splice(number, 1));
    this.labels = moved;
    this.place = target;
    this.render();
    this.onChange(`Moved ${moved[target].name} to place ${target + 1}`, { isOrder: true });
  }

  #remove(number) {
    const { name } = this.labels[number];
    this.labels = this.labels.filter((_, index) => index !== number);
    this.render();
    if (this.labels.length) this.#focus(this.place);
    else byId("new-label").focus();
    this.onChange(`Removed ${name}`);
  }

  #connectDialog() {
    const dialog = byId("label-dialog");
    dialog.querySelector("form").addEventListener("submit", (event) => this.#save(event));
    byId("label-cancel").addEventListener("click", () => dialog.close());
    byId("label-remove").addEventListener("click", () => {
      dialog.close();
      this.#remove(this.edited);
    });
    for (const [id, step] of [["label-left", -1], ["label-right", 1]]) {
      byId(id).addEventListener("click", () => {
        this.#move(this.edited, step);
        this.edited = this.place;
      });
    }
  }

  #edit(number) {
    const label = this.labels[number];
    this.edited = this.place = number;
    byId("label-name").value = label.name;
    byId("label-description").value = label.description;
    byId("label-examples").value = label.examples.join("\n");
    byId("label-threshold").value = label.threshold ?? "";
    byId("label-error").hidden = true;
    byId("label-dialog").showModal();
  }

  #save(event) {
    const name = byId("label-name").value.trim();
    const isTaken = this.labels.some((one, number) => number !== this.edited && one.name === name);
    if (!name || isTaken) {
      event.preventDefault();
      byId("label-error").textContent = isTaken ? `There is another label ${name}.` : "A label needs a name.";
      byId("label-error").hidden = false;
      return;
    }
    const threshold = byId("label-threshold").value;
    const examples = byId("label-examples").value.split("\n").map((one) => one.trim()).filter(Boolean);
    const label = makeLabel({
      name,
      description: byId("label-description").value.trim(),
      examples,
      threshold: threshold === "" ? null : Number(threshold),
    });
    this.labels = this.labels.map((one, number) => (number === this.edited ? label : one));
    this.render();
    this.onChange(`Changed ${name}`);
  }
}

/** An element with text. */
export function element(tag, text, className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}
