/** The menu from which a label is chosen, next to a selection. */
import { element } from "./labels.js";

export class LabelMenu {
  constructor(styleOf) {
    this.styleOf = styleOf;
    this.menu = document.getElementById("label-menu");
    this.menu.addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("pointerdown", (event) => {
      if (!this.menu.hidden && !this.menu.contains(event.target)) this.#close(null);
    });
  }

  /** Offer labels below a rectangle of the window; `onClose` gets the chosen name, or null. */
  open(labels, rectangle, onClose) {
    this.onClose = onClose;
    this.menu.replaceChildren(...labels.map((label, number) => this.#item(label, number)));
    this.menu.hidden = false;
    const { width, height } = this.menu.getBoundingClientRect();
    const below = rectangle.bottom + 6;
    const top = below + height < innerHeight ? below : Math.max(8, rectangle.top - height - 6);
    this.menu.style.left = `${Math.max(8, Math.min(rectangle.left, innerWidth - width - 8)) + scrollX}px`;
    this.menu.style.top = `${top + scrollY}px`;
    this.menu.firstElementChild.focus({ preventScroll: true });
  }

  #item(label, number) {
    const { colour, line } = this.styleOf(label);
    const item = document.createElement("button");
    item.type = "button";
    item.tabIndex = -1;
    item.className = `colour-${colour} line-${line}`;
    item.setAttribute("role", "menuitem");
    item.append(element("kbd", number < 9 ? number + 1 : " "), element("span", label, "label"));
    item.addEventListener("click", () => this.#close(label));
    return item;
  }

  #key(event) {
    const items = [...this.menu.children];
    const place = items.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) items.at((place + step) % items.length).focus();
    else if (/^[1-9]$/.test(event.key)) items[Number(event.key) - 1]?.click();
    else if (event.key === "Escape" || event.key === "Tab") this.#close(null);
    else return;
    event.preventDefault();
  }

  #close(label) {
    this.menu.hidden = true;
    const { onClose } = this;
    this.onClose = null;
    onClose?.(label);
  }
}
