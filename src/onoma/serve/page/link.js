/**
 * The state of the page in the fragment of its address, which browsers do not send to servers:
 *   #text=Tom flew to Paris.&labels=person,city&threshold=0.4&overlap=nested
 * `text` may be repeated. `labels` are names, or a JSON list if they have descriptions; `corrections` is a JSON list.
 */

const LONGEST = 60_000; // characters of an address that can still be shared
const OVERLAPS = ["flat", "nested", "any"];
const PRESETS = ["precise", "balanced", "complete"];

/** The fragment of a state, and whether the texts had to be left out because they are too long. */
export function toFragment({ texts, labels, threshold, overlap, model }) {
  const settings = new URLSearchParams();
  if (labels.length) settings.set("labels", writeLabels(labels));
  if (threshold !== null) settings.set("threshold", threshold);
  if (overlap !== "flat") settings.set("overlap", overlap);
  if (model) settings.set("model", model);
  const isTooLong = texts.reduce((sum, one) => sum + one.text.length, 0) > LONGEST;
  if (isTooLong) return { fragment: settings.toString(), isShort: true };
  const whole = new URLSearchParams();
  for (const one of texts) if (one.text) whole.append("text", one.text);
  const corrections = texts.map((one) => one.corrections);
  if (corrections.some(isUsed)) whole.set("corrections", JSON.stringify(corrections.map(packCorrections)));
  for (const [key, value] of settings) whole.append(key, value);
  const fragment = whole.toString();
  return fragment.length <= LONGEST ? { fragment, isShort: false } : { fragment: settings.toString(), isShort: true };
}

/** The state in a fragment; what is missing or not valid gets its default. */
export function fromFragment(fragment) {
  const values = new URLSearchParams(fragment.replace(/^#/, ""));
  const texts = values.getAll("text");
  const corrections = parseJson(values.get("corrections"), []);
  const threshold = values.get("threshold");
  const number = Number(threshold);
  return {
    texts: texts.map((text, index) => ({ text, corrections: unpackCorrections(corrections[index], text) })),
    labels: readLabels(values.get("labels") ?? ""),
    threshold: PRESETS.includes(threshold) ? threshold : threshold && number >= 0 && number <= 1 ? number : null,
    overlap: OVERLAPS.includes(values.get("overlap")) ? values.get("overlap") : "flat",
    model: values.get("model"),
  };
}

function writeLabels(labels) {
  const isPlain = (one) => !one.description && !one.examples.length && one.threshold === null && !/[,，、"[]/.test(one.name);
  if (labels.every(isPlain)) return labels.map((one) => one.name).join(",");
  return JSON.stringify(labels.map((one) => (isPlain(one) ? one.name : { ...one })));
}

function readLabels(text) {
  const list = text.startsWith("[") ? parseJson(text, []) : splitLabels(text);
  return list.map(makeLabel).filter((one) => one !== null);
}

/** Names as people write them, separated by English or Chinese commas or line breaks. */
export function splitLabels(text) {
  return text
    .split(/[,，、\n]/)
    .map((name) => name.trim())
    .filter(Boolean);
}

/** A label from a name or an object; null if it has no name. */
export function makeLabel(value) {
  const given = typeof value === "string" ? { name: value } : value;
  if (typeof given?.name !== "string" || !given.name.trim()) return null;
  return {
    name: given.name.trim(),
    description: typeof given.description === "string" ? given.description : "",
    examples: Array.isArray(given.examples) ? given.examples.filter((one) => typeof one === "string" && one) : [],
    threshold: typeof given.threshold === "number" && given.threshold >= 0 && given.threshold <= 1 ? given.threshold : null,
  };
}

const isUsed = ({ added, removed, checked }) => added.length > 0 || removed.length > 0 || checked;

function packCorrections({ added, removed, checked, complete }) {
  return [
    added.map((one) => [one.start, one.end, one.label]),
    removed.map((one) => [one.start, one.end]),
    Number(checked),
    Number(complete),
  ];
}

function unpackCorrections(packed, text) {
  const [added, removed, checked, complete] = Array.isArray(packed) ? packed : [];
  const length = [...text].length;
  const spans = (list) =>
    (Array.isArray(list) ? list : [])
      .map(([start, end, label] = []) => ({ start, end, label }))
      .filter(({ start, end }) => Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start < end && end <= length);
  return {
    added: spans(added).filter((one) => typeof one.label === "string" && one.label),
    removed: spans(removed).map(({ start, end }) => ({ start, end })),
    checked: Boolean(checked),
    complete: Boolean(complete),
  };
}

function parseJson(text, fallback) {
  try {
    const value = JSON.parse(text);
    return Array.isArray(value) ? value : fallback;
  } catch {
    return fallback;
  }
}
