/** The page: what it knows, and how its parts work together. */
import { FLOOR, MOST_CANDIDATES, Service } from "./api.js";
import { addSpan, applyCorrections, carryOver, cutOut, History, NO_CORRECTIONS, removeSpan, replaceSpan } from "./corrections.js";
import { decode, spanKey } from "./decode.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { readFiles } from "./files.js";
import { FormatError, FORMATS, toTraining } from "./formats.js";
import { Highlighter } from "./highlight.js";
import { element, LabelBar } from "./labels.js";
import { fromFragment, makeLabel, toFragment } from "./link.js";
import { LabelMenu } from "./menu.js";
import { CodePoints } from "./offsets.js";
import { Sidebar } from "./sidebar.js";
import { nextEdge } from "./words.js";

const AT_THE_SAME_TIME = 4; // requests
const MOST_TEXTS_AT_ONCE = 20; // that are read again whenever a label changes
const FEWEST_TEXTS = 5; // that `onoma train` accepts
const EMBEDDED = "embedded";
const byId = (id) => document.getElementById(id);

/** A text of the page. `answer` is what the service said about it, null before. */
function makeText(text, corrections = NO_CORRECTIONS) {
  return { text, points: new CodePoints(text), corrections, answer: null };
}

class App {
  constructor() {
    this.service = new Service();
    this.history = new History();
    this.texts = [makeText("")];
    this.current = 0;
    this.isEditing = true;
    this.threshold = null; // a number, a preset, or null for the model's own
    this.overlap = "flat";
    this.model = null;
    this.selected = null;
    this.labelBar = new LabelBar((what, { isOrder = false } = {}) => this.#labelsChanged(what, isOrder));
    const styleOf = (label) => this.labelBar.styleOf(label);
    this.menu = new LabelMenu(styleOf);
    this.view = new Highlighter(byId("read"), styleOf);
    this.editor = new Editor(this.view, this.#editorActions());
    this.sidebar = new Sidebar(styleOf, this.#sidebarActions());
    this.#connect();
  }

  async start() {
    this.#load(fromFragment(location.hash));
    if ((await this.#readModel()) && this.text.text && this.labels.length) await this.extract();
  }

  get labels() {
    return this.labelBar.labels;
  }

  get text() {
    return this.texts[this.current];
  }

  // --- what is shown

  /** The entities of a text with the threshold, the overlap and the corrections of now. */
  entitiesOf(text) {
    return applyCorrections(this.#found(text.answer), text.corrections, this.overlap);
  }

  #found(answer) {
    if (!answer) return [];
    if (answer.overlap === this.overlap && answer.threshold === this.threshold) return answer.results;
    const own = new Map(this.labels.map((one) => [one.name, one.threshold]));
    const isNumber = typeof this.threshold === "number";
    const thresholdOf = (one) => (isNumber ? (own.get(one.label) ?? this.threshold) : one.threshold);
    if (!answer.isLong) return decode(answer.candidates, thresholdOf, this.overlap);
    return isNumber ? answer.results.filter((one) => one.score >= thresholdOf(one)) : answer.results;
  }

  render() {
    byId("input").hidden = !this.isEditing;
    for (const id of ["read", "read-hint", "edit"]) byId(id).hidden = this.isEditing;
    byId("examples").hidden = !this.isEditing;
    this.#showSplit();
    if (this.isEditing) {
      byId("notice").hidden = true;
      this.view.select(null);
    }
    this.entities = this.isEditing ? [] : this.entitiesOf(this.text);
    if (!this.isEditing) {
      this.view.show(this.text.points, this.entities);
      this.editor.refresh();
    }
    const none = this.isEditing ? "Press Extract to find them." : this.running ? "Reading …" : "None above the threshold.";
    this.sidebar.show(this.text.points, this.entities, none);
    this.labelBar.count(this.entities);
    if (!this.entities.some((one) => spanKey(one) === this.selected)) this.selected = null;
    this.#showSelection();
    this.#showSettings();
    this.#showPages();
    this.#showNotice();
    this.#showTraining();
    this.#writeLinkSoon();
  }

  #showSplit() {
    byId("split").hidden = !this.isEditing || byId("input").value.trim().split(/\s*\n\s*/).length < 2;
  }

  #showSelection() {
    this.view.select(this.selected);
    const names = this.labels.map((one) => one.name);
    this.sidebar.select(this.selected, this.text.answer?.candidates ?? [], names);
  }

  #showSettings() {
    const thresholds = Object.values(this.text.answer?.thresholds ?? {});
    const isNumber = typeof this.threshold === "number";
    const shown = isNumber ? this.threshold : thresholds.length ? Math.min(...thresholds) : (this.info?.threshold ?? 0.5);
    byId("threshold").value = shown;
    byId("threshold-value").textContent = shown.toFixed(2);
    const preset = this.threshold ?? "balanced";
    byId("threshold-hint").textContent = isNumber ? "Set by you" : `Chosen by the model (${preset})`;
    for (const input of byId("presets").querySelectorAll("input")) input.checked = !isNumber && input.value === preset;
    for (const input of byId("overlap").querySelectorAll("input")) input.checked = input.value === this.overlap;
    byId("undo").disabled = !this.history.done.length;
    byId("redo").disabled = !this.history.undone.length;
  }

  #showPages() {
    const several = this.texts.length > 1;
    byId("pages").hidden = byId("checked-field").hidden = !several;
    byId("page-number").textContent = `${this.current + 1} of ${this.texts.length}`;
    byId("previous").disabled = this.current === 0;
    byId("next").disabled = this.current === this.texts.length - 1;
    byId("checked").checked = this.text.corrections.checked;
  }

  #showNotice() {
    const { answer, corrections } = this.text;
    const lowest = answer?.candidates.length >= MOST_CANDIDATES ? answer.candidates.at(-1).score : 0;
    const [what, action] = this.isEditing
      ? []
      : corrections.complete
        ? ["These entities come from the file.", "Show what the model finds as well"]
        : typeof this.threshold === "number" && this.threshold < lowest
          ? [`This text has many candidates; those below ${lowest.toFixed(2)} are not shown.`]
          : !answer && !this.running
            ? ["This text has not been read yet, or the labels have changed.", "Extract"]
            : [];
    byId("notice").hidden = !what;
    byId("notice").firstElementChild.textContent = what ?? "";
    byId("notice-action").textContent = action ?? "";
    byId("notice-action").hidden = !action;
  }

  #showTraining() {
    const documents = this.trainingTexts();
    const mentions = documents.reduce((sum, one) => sum + this.entitiesOf(one).length, 0);
    const checked = this.texts.length > 1 ? `${documents.length} of ${this.texts.length} texts are checked` : "One text";
    const advice =
      documents.length < FEWEST_TEXTS
        ? `Training needs at least ${FEWEST_TEXTS} texts; 20 to 200 sentences are a good start.`
        : "20 to 200 sentences with some mentions each are a good start.";
    byId("train-hint").textContent = `${checked}, with ${mentions} ${mentions === 1 ? "mention" : "mentions"}. ${advice}`;
    const name = this.info?.name ?? EMBEDDED;
    const start = name === EMBEDDED ? EMBEDDED : quote(`FOLDER OF ${name}`);
    byId("command").textContent =
      `onoma train --start ${start} --data corrections.jsonl --output runs/corrections\n` +
      "onoma serve --model corrections=runs/corrections/onnx";
  }

  /** The texts that training data is made of: the checked ones, or the only one. */
  trainingTexts() {
    return this.texts.filter((one) => one.text && (one.corrections.checked || this.texts.length === 1));
  }

  say(message) {
    byId("status").textContent = message;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (byId("status").textContent = ""), 8000);
  }

  showError(error) {
    byId("error-what").textContent = sentence(error.message);
    byId("error-fix").textContent = error.fix ? sentence(error.fix) : "";
    byId("error").hidden = false;
    byId("error").scrollIntoView({ block: "nearest" });
    this.say("");
  }

  clearError() {
    byId("error").hidden = true;
    byId("error-what").textContent = byId("error-fix").textContent = "";
  }

  // --- texts, labels and settings

  #load({ texts, labels, threshold, overlap, model }) {
    this.texts = texts.length ? texts.map((one) => makeText(one.text, one.corrections)) : [makeText("")];
    this.history = new History();
    Object.assign(this, { threshold, overlap, model, current: 0, selected: null, isEditing: true });
    this.labelBar.set(labels);
    byId("input").value = this.text.text;
    this.render();
  }

  /** Ask for the name, the labels and the limits of the model; false if there is no answer. */
  async #readModel() {
    try {
      this.info = await this.#withKey(() => this.service.model(this.model));
    } catch (error) {
      this.showError(error);
      return false;
    }
    const { models, labels } = this.info;
    this.model = models.includes(this.model) ? this.model : null;
    byId("model").replaceChildren(...models.map((name) => new Option(name, name, false, name === this.info.name)));
    byId("model-field").hidden = models.length < 2;
    if (labels && !this.labels.length) this.labelBar.set(labels.map(makeLabel));
    this.render();
    return true;
  }

  /** Do something, asking for an API key as long as the service wants one; several requests ask once. */
  async #withKey(request) {
    for (;;) {
      try {
        return await request();
      } catch (error) {
        if (error.status !== 401) throw error;
        this.asking ??= askKey(this.service).finally(() => (this.asking = null));
        if (!(await this.asking)) throw new FormatError("the service needs an API key", "press Extract to enter it");
      }
    }
  }

  /** Take over what is in the text field; corrections move with the text around them. */
  #takeInput() {
    const { value } = byId("input");
    const { text, corrections } = this.text;
    if (value === text.replace(/\r\n?/g, "\n")) return; // a text field knows no other line ends
    this.texts[this.current] = makeText(value, carryOver(corrections, text, value));
    this.history = new History(); // entries were made for the former text
  }

  /** Make a text of each line that is not empty. */
  split() {
    this.#takeInput();
    const { text, points, corrections } = this.text;
    const lines = [...text.matchAll(/[^\r\n]*\S[^\r\n]*/g)].map((match) =>
      makeText(match[0], cutOut(corrections, points.toPoint(match.index), points.toPoint(match.index + match[0].length))),
    );
    this.texts.splice(this.current, 1, ...lines);
    this.history = new History();
    byId("input").value = this.text.text;
    this.render();
    this.say(`${this.texts.length} texts`);
    if (this.labels.length) this.extract();
    else byId("input").focus();
  }

  open(documents) {
    this.texts = documents.map(({ text, entities }) =>
      makeText(text, entities ? { ...NO_CORRECTIONS, added: entities, checked: true, complete: true } : NO_CORRECTIONS),
    );
    this.history = new History();
    this.current = 0;
    this.selected = null;
    this.isEditing = !documents.some((one) => one.entities);
    this.labelBar.include(documents.flatMap((one) => one.entities?.map((entity) => entity.label) ?? []));
    byId("input").value = this.text.text;
    this.clearError();
    this.render();
    this.say(documents.length === 1 ? "Opened a text" : `Opened ${documents.length} texts`);
    if (documents.length > 1 && this.labels.length) this.extract();
  }

  async openFiles(files) {
    try {
      const documents = await readFiles(files);
      if (documents.length) this.open(documents);
    } catch (error) {
      this.showError(error);
    }
  }

  showExample({ texts, labels, overlap }) {
    this.#load({
      texts: texts.map((text) => ({ text, corrections: NO_CORRECTIONS })),
      labels: labels.map(makeLabel),
      threshold: null,
      overlap,
      model: this.model,
    });
    this.extract();
  }

  #labelsChanged(what, isOrder) {
    this.say(what);
    if (isOrder || this.isEditing) this.render();
    else this.#readAgain();
  }

  /** After a change that needs new answers: at once for few texts, on request for many. */
  #readAgain() {
    if (this.texts.length <= MOST_TEXTS_AT_ONCE && this.labels.length) this.extract();
    else {
      for (const one of this.texts) one.answer = null;
      this.render();
    }
  }

  setThreshold(threshold) {
    const isPreset = typeof threshold !== "number";
    this.threshold = threshold;
    this.#settingsChanged(isPreset);
  }

  setOverlap(overlap) {
    this.overlap = overlap;
    this.#settingsChanged(false);
  }

  /** Show the change at once; presets, and texts that are too long for candidates, need the service. */
  #settingsChanged(needsService) {
    this.render();
    clearTimeout(this.delay);
    if (this.isEditing) return;
    if (needsService) this.#readAgain();
    else if (this.texts.some((one) => one.answer?.isLong)) this.delay = setTimeout(() => this.#readAgain(), 500);
  }

  page(step) {
    const target = this.current + step;
    if (target < 0 || target >= this.texts.length) return;
    if (this.isEditing) this.#takeInput();
    this.current = target;
    this.selected = null;
    byId("input").value = this.text.text;
    this.editor.anchor = this.editor.cursor = 0;
    this.render();
    this.say(`Text ${target + 1} of ${this.texts.length}, ${this.#counted(this.entities.length)}`);
  }

  edit() {
    this.stop();
    this.isEditing = true;
    byId("input").value = this.text.text;
    this.render();
    byId("input").focus();
  }

  // --- extraction

  stop() {
    this.running?.abort();
    this.running = null;
    byId("extract").classList.remove("running");
    byId("extract").firstChild.textContent = "Extract ";
  }

  async extract() {
    this.stop();
    this.clearError();
    if (this.isEditing) this.#takeInput();
    this.labelBar.takeInput();
    if (!this.#isReady()) return;
    const running = (this.running = new AbortController());
    byId("extract").classList.add("running");
    byId("extract").firstChild.textContent = "Stop ";
    if (this.isEditing) this.#startReading();
    this.say("Reading …");
    try {
      await this.#readTexts(running.signal);
    } catch (error) {
      if (error.name !== "AbortError" && this.running === running) this.showError(error);
      running.abort();
    }
    if (this.running !== running) return;
    this.stop();
    this.render();
    if (byId("error").hidden) this.say(this.#summary());
  }

  /** Show the text instead of the text field; the focus goes along. */
  #startReading() {
    const focused = document.activeElement;
    this.isEditing = false;
    this.render();
    if (focused !== document.body && focused.offsetParent === null) byId("read").focus({ preventScroll: true });
  }

  #isReady() {
    const problem = !this.texts.some((one) => one.text.trim())
      ? ["there is no text", "paste one, drop a file, or try an example"]
      : !this.labels.length
        ? ["there are no labels", "name what to look for, such as person, city"]
        : !this.texts.every((one) => one.text.isWellFormed())
          ? ["the text contains half of a character (a lone surrogate)", "remove it, or paste the text again"]
          : null;
    if (problem) this.showError(new FormatError(...problem));
    return !problem;
  }

  /** Read all texts, some at the same time, the one that is shown first. */
  async #readTexts(signal) {
    const waiting = this.texts.filter((one) => one.text.trim() && one !== this.text);
    if (this.text.text.trim()) waiting.unshift(this.text);
    const total = waiting.length;
    const work = async () => {
      while (waiting.length && !signal.aborted) {
        await this.#readText(waiting.shift(), signal);
        if (total > 1) this.say(`Read ${total - waiting.length} of ${total} texts`);
      }
    };
    await Promise.all(Array.from({ length: AT_THE_SAME_TIME }, work));
  }

  async #readText(text, signal) {
    const { threshold, overlap } = this;
    const isLong = text.points.length > (this.info?.limits?.candidate_characters ?? Infinity);
    const body = {
      texts: [text.text],
      labels: this.labels.map(asRequested),
      threshold: this.#requestedThreshold(),
      overlap,
      model: this.model,
      candidates: isLong ? null : FLOOR,
    };
    const onWait = (seconds) => this.say(`The service is busy; trying again in ${seconds} s`);
    const answer = await this.#withKey(() => this.service.extract(body, signal, onWait));
    text.answer = {
      results: answer.results[0],
      candidates: isLong ? [] : answer.candidates[0],
      thresholds: answer.thresholds ?? {},
      isLong,
      threshold,
      overlap,
    };
    if (text === this.text && !this.isEditing) this.render();
  }

  /** The threshold of labels that have none of their own. */
  #requestedThreshold() {
    if (this.threshold === null || this.labels.every((one) => one.threshold === null)) return this.threshold;
    const others = this.labels.filter((one) => one.threshold === null);
    return Object.fromEntries(others.map((one) => [one.name, this.threshold]));
  }

  #summary() {
    const read = this.texts.filter((one) => one.text.trim());
    const total = read.reduce((sum, one) => sum + this.entitiesOf(one).length, 0);
    return `Found ${this.#counted(total)}` + (read.length > 1 ? ` in ${read.length} texts` : "");
  }

  #counted(number) {
    return `${number} ${number === 1 ? "entity" : "entities"}`;
  }

  // --- corrections

  #entity(key) {
    return this.entities.find((one) => spanKey(one) === key);
  }

  #correct(corrections, what, selected) {
    this.history.push({ text: this.current, before: this.text.corrections, after: corrections, what });
    this.#setCorrections(corrections);
    this.selected = selected;
    this.render();
    this.say(what);
  }

  #setCorrections(corrections) {
    this.text.corrections = corrections;
    this.isUnsaved = true;
  }

  add(start, end, label) {
    const { points, corrections } = this.text;
    const span = { start: points.toPoint(start), end: points.toPoint(end), label };
    this.#correct(addSpan(corrections, span, this.overlap), `Added “${points.slice(span.start, span.end)}” as ${label}`, spanKey(span));
  }

  remove(key) {
    const entity = this.#entity(key);
    if (!entity) return;
    const place = this.entities.indexOf(entity);
    const next = this.entities[place + 1] ?? this.entities[place - 1];
    const isInList = document.activeElement === byId("list");
    const mention = this.text.points.slice(entity.start, entity.end);
    const selected = isInList && next ? spanKey(next) : null;
    this.#correct(removeSpan(this.text.corrections, entity), `Removed “${mention}”`, selected);
    if (document.activeElement === document.body) byId("list").focus();
  }

  replace(key, span) {
    const entity = this.#entity(key);
    if (!entity || (spanKey(entity) === spanKey(span) && entity.label === span.label)) return;
    const mention = this.text.points.slice(span.start, span.end);
    const isFocused = byId("details").contains(document.activeElement);
    const corrections = replaceSpan(this.text.corrections, entity, span, this.overlap);
    this.#correct(corrections, `Changed to “${mention}”, ${span.label}`, spanKey(span));
    if (isFocused && !byId("details").contains(document.activeElement)) byId("list").focus();
  }

  relabel(key, label) {
    const entity = this.#entity(key);
    if (entity) this.replace(key, { ...entity, label });
  }

  relabelByNumber(key, number) {
    const label = this.labels[number - 1];
    if (label) this.relabel(key, label.name);
  }

  /** Move the start or the end of an entity by a word or a character. */
  moveEdge(key, edge, step, byCharacter) {
    const entity = this.#entity(key);
    const { text, points } = this.text;
    const place = nextEdge(text, points.toUtf16(entity[edge]), step, edge === "start", !byCharacter);
    const span = { ...entity, [edge]: points.toPoint(place) };
    if (span.start < span.end) this.replace(key, span);
  }

  undo() {
    this.#travel(this.history.undo(), "before", "Undone");
  }

  redo() {
    this.#travel(this.history.redo(), "after", "Done again");
  }

  #travel(entry, side, verb) {
    if (!entry) return;
    this.current = entry.text;
    this.#setCorrections(entry[side]);
    if (this.isEditing) this.edit();
    this.render();
    this.say(`${verb}: ${entry.what}`);
  }

  setChecked(checked) {
    const what = checked ? "Marked as checked" : "Marked as not checked";
    this.#correct({ ...this.text.corrections, checked }, what, this.selected);
  }

  chooseLabel(rectangle, onChosen, returnTo) {
    if (!this.labels.length) {
      this.showError(new FormatError("there are no labels", "add a label first"));
      return;
    }
    const names = this.labels.map((one) => one.name);
    this.menu.open(names, rectangle, (label) => {
      returnTo.focus({ preventScroll: true });
      if (label) onChosen(label);
    });
  }

  #editorActions() {
    return {
      select: (key) => {
        this.selected = key;
        this.#showSelection();
        if (key) this.view.reveal(key);
      },
      open: (key) => {
        this.selected = key;
        this.#showSelection();
        byId("list").focus();
      },
      label: (start, end, rectangle, number) => {
        if (number) {
          if (this.labels[number - 1]) this.add(start, end, this.labels[number - 1].name);
          return;
        }
        this.chooseLabel(rectangle, (label) => this.add(start, end, label), byId("read"));
      },
      relabel: (key, number) => this.relabelByNumber(key, number),
      preview: (key, start, end) => this.say(`“${this.text.text.slice(start, end)}”`),
      move: (key, start, end) => {
        const { points } = this.text;
        this.replace(key, { ...this.#entity(key), start: points.toPoint(start), end: points.toPoint(end) });
      },
      remove: (key) => this.remove(key),
      page: (step) => this.page(step),
      toggleChecked: () => this.setChecked(!this.text.corrections.checked),
    };
  }

  #sidebarActions() {
    return {
      select: (key) => {
        this.selected = key;
        this.#showSelection();
        this.view.reveal(key);
      },
      close: () => {
        this.selected = null;
        this.#showSelection();
        byId("read").focus({ preventScroll: true });
      },
      relabel: (key, label) => this.relabel(key, label),
      relabelByNumber: (key, number) => this.relabelByNumber(key, number),
      replace: (key, { start, end, label }) => this.replace(key, { start, end, label }),
      moveEdge: (key, edge, step, byCharacter) => this.moveEdge(key, edge, step, byCharacter),
      remove: (key) => this.remove(key),
      page: (step) => this.page(step),
      chooseLabel: (key) => {
        const option = byId("list").querySelector(`[data-span="${key}"]`);
        this.chooseLabel(option.getBoundingClientRect(), (label) => this.relabel(key, label), byId("list"));
      },
    };
  }

  // --- saving

  #documents(texts) {
    return texts.filter((one) => one.text).map((one) => ({ ...one, entities: this.entitiesOf(one) }));
  }

  /** Write documents in a format and hand them on; errors are shown. */
  async save(write, handOn) {
    try {
      if (this.isEditing) this.#takeInput();
      await handOn(write());
      this.clearError();
    } catch (error) {
      this.showError(error);
    }
  }

  #connectSaving() {
    byId("format").replaceChildren(...Object.keys(FORMATS).map((name) => new Option(name)));
    const write = () => FORMATS[byId("format").value].write(this.#documents(this.texts));
    byId("copy").addEventListener("click", () => this.save(write, (content) => this.#copy(content, "the results")));
    byId("download").addEventListener("click", () => {
      const { extension, type } = FORMATS[byId("format").value];
      this.save(write, (content) => this.#download(content, `entities.${extension}`, type));
    });
    byId("save-training").addEventListener("click", () => this.save(() => this.#training(), (content) => {
      this.#download(content, "corrections.jsonl", "application/jsonl");
      this.isUnsaved = false;
    }));
    byId("copy-command").addEventListener("click", () =>
      this.save(() => byId("command").textContent, (content) => this.#copy(content, "the command")),
    );
    byId("share").addEventListener("click", () => {
      const { isShort } = this.#writeLink();
      const what = isShort ? "a link with labels and settings; the text is too long for it" : "the link";
      this.save(() => location.href, (content) => this.#copy(content, what));
    });
  }

  #training() {
    const texts = this.trainingTexts();
    if (!texts.length) throw new FormatError("no text is checked yet", "correct a text, or mark it as checked");
    return toTraining(this.#documents(texts));
  }

  async #copy(content, what) {
    if (!(await copyText(content))) {
      throw new FormatError("the browser does not allow copying", "use Download, or open the page through https or localhost");
    }
    this.say(`Copied ${what}`);
  }

  #download(content, name, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    this.say(`Saved ${name}`);
  }

  /** Browsers allow only some changes of the address per second, and a slider makes many. */
  #writeLinkSoon() {
    clearTimeout(this.linkDelay);
    this.linkDelay = setTimeout(() => this.#writeLink(), 150);
  }

  #writeLink() {
    clearTimeout(this.linkDelay);
    const link = toFragment(this.#linkState());
    this.isShortLink = link.isShort;
    const address = link.fragment ? `#${link.fragment}` : location.pathname + location.search;
    history.replaceState(null, "", address);
    return link;
  }

  #linkState() {
    const { texts, labels, threshold, overlap, model } = this;
    return { texts, labels, threshold, overlap, model };
  }

  // --- events

  #connect() {
    byId("extract").addEventListener("click", () => (this.running ? this.stop() || this.render() : this.extract()));
    byId("threshold").addEventListener("input", (event) => this.setThreshold(Number(event.target.value)));
    byId("presets").addEventListener("change", (event) =>
      this.setThreshold(event.target.value === "balanced" ? null : event.target.value),
    );
    byId("overlap").addEventListener("change", (event) => this.setOverlap(event.target.value));
    byId("previous").addEventListener("click", () => this.page(-1));
    byId("next").addEventListener("click", () => this.page(1));
    byId("checked").addEventListener("change", (event) => this.setChecked(event.target.checked));
    byId("undo").addEventListener("click", () => this.undo());
    byId("redo").addEventListener("click", () => this.redo());
    byId("edit").addEventListener("click", () => this.edit());
    byId("split").addEventListener("click", () => this.split());
    byId("input").addEventListener("input", () => this.#showSplit());
    byId("error-close").addEventListener("click", () => this.clearError());
    byId("model").addEventListener("change", async (event) => {
      this.model = event.target.value;
      if ((await this.#readModel()) && !this.isEditing) this.extract();
    });
    byId("notice-action").addEventListener("click", () => {
      const { corrections } = this.text;
      if (corrections.complete) this.text.corrections = { ...corrections, complete: false };
      this.extract();
    });
    byId("input").addEventListener("change", () => {
      this.#takeInput();
      this.#showTraining();
      this.#writeLinkSoon();
    });
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault();
      byId(this.isEditing ? "input" : "read").focus();
    });
    addEventListener("hashchange", () => {
      this.stop();
      this.#load(fromFragment(location.hash));
      if (this.text.text && this.labels.length) this.extract();
    });
    addEventListener("beforeunload", (event) => {
      if (this.isUnsaved && this.isShortLink) event.preventDefault();
    });
    document.addEventListener("keydown", (event) => this.#key(event));
    this.#connectExamples();
    this.#connectFiles();
    this.#connectSaving();
    connectTheme(() => this.view.relayout());
    connectHelp();
  }

  #key(event) {
    const isField = event.target.matches("input[type=text], input[type=number], textarea");
    const control = event.ctrlKey || event.metaKey;
    const letter = event.key.toLowerCase();
    if (document.querySelector("dialog[open]")) return;
    if (control && event.key === "Enter") this.extract();
    else if (control && letter === "z" && !isField) event.shiftKey ? this.redo() : this.undo();
    else if (control && letter === "y" && !isField) this.redo();
    else if (event.key === "?" && !isField) byId("help").click();
    else return;
    event.preventDefault();
  }

  #connectExamples() {
    for (const example of EXAMPLES) {
      const button = element("button", example.name, "quiet");
      button.type = "button";
      button.lang = example.language;
      button.addEventListener("click", () => this.showExample(example));
      byId("examples").append(button);
    }
  }

  #connectFiles() {
    byId("open").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", async (event) => {
      await this.openFiles([...event.target.files]);
      event.target.value = "";
    });
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      byId("drop").hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (event.relatedTarget === null) byId("drop").hidden = true;
    });
    addEventListener("drop", (event) => {
      byId("drop").hidden = true;
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.openFiles([...event.dataTransfer.files]);
    });
  }
}

/** A label as the service expects it. */
function asRequested({ name, description, examples, threshold }) {
  if (!description && !examples.length && threshold === null) return name;
  return {
    name,
    ...(description && { description }),
    ...(examples.length && { examples }),
    ...(threshold !== null && { threshold }),
  };
}

/** Ask for the API key; false if the user does not give one. */
function askKey(service) {
  const dialog = byId("key-dialog");
  byId("key-error").hidden = !service.hasKey;
  byId("key").value = dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const take = () => {
      service.setKey(byId("key").value);
      resolve(dialog.returnValue === "send");
    };
    dialog.addEventListener("close", take, { once: true });
  });
}

async function copyText(content) {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    return copyWithSelection(content);
  }
}

/** For pages that are not opened through https or localhost. */
function copyWithSelection(content) {
  const field = document.createElement("textarea");
  field.value = content;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  return isDone;
}

function connectTheme(onChange) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const show = () => byId("theme").setAttribute("aria-pressed", isDark());
  byId("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("onoma-theme", theme);
    } catch {
      // storage may be forbidden; then the choice holds until the page is closed
    }
    show();
    onChange();
  });
  dark.addEventListener("change", show);
  show();
}

function connectHelp() {
  byId("help").addEventListener("click", () => byId("help-dialog").showModal());
}

/** A text as a sentence of its own. */
function sentence(text) {
  const isWord = /^\p{Ll}+[\s,;]/u.test(text); // and not the name of a file
  const start = isWord ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(start) ? start : `${start}.`;
}

/** A word of a command line, in quotes if a shell would split or expand it. */
function quote(word) {
  return /^[\w./@:+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

const app = new App();
app.start();
