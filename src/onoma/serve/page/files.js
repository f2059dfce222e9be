/** Files that the user drops or opens: txt, jsonl and docx. The result is a list of {text, entities | null}. */
import { FormatError } from "./formats.js";

const MOST_BYTES = 20e6; // of a file, and of the text inside a docx
const UTF8 = "save the file as UTF-8";

export async function readFiles(files) {
  const documents = [];
  for (const file of files) documents.push(...(await readFile(file)));
  return documents;
}

async function readFile(file) {
  if (file.size > MOST_BYTES) {
    throw new FormatError(`${file.name} is larger than ${MOST_BYTES / 1e6} MB`, "use `onoma extract FILE` for large files");
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  const extension = file.name.toLowerCase().split(".").at(-1);
  if (extension === "pdf" || startsWith(bytes, "%PDF-")) {
    throw new FormatError("PDF files cannot be read here", `save ${file.name} as text first, for example with pdftotext`);
  }
  if (startsWith(bytes, "PK\u0003\u0004")) return [{ text: await readDocx(bytes, file.name), entities: null }];
  const text = decodeText(bytes, file.name);
  if (["jsonl", "ndjson"].includes(extension)) return parseJsonLines(text, file.name);
  return [{ text, entities: null }];
}

function startsWith(bytes, signature) {
  return [...signature].every((sign, index) => bytes[index] === sign.charCodeAt(0));
}

function decodeText(bytes, name) {
  const encoding = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.slice(0, 2).join()] ?? "utf-8";
  let text;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw new FormatError(`${name} is not encoded in UTF-8`, UTF8);
  }
  if (text.includes("\0")) throw new FormatError(`${name} is not a text file`, "drop a txt, jsonl or docx file");
  return text;
}

/** Lines such as {"text": ..., "entities": [{"start", "end", "label"}]}; entities may be missing. */
export function parseJsonLines(content, name) {
  const documents = [];
  content.split(/\r?\n/).forEach((line, number) => {
    if (line.trim()) documents.push(parseRecord(line, `${name}, line ${number + 1}`));
  });
  if (!documents.length) throw new FormatError(`${name} is empty`, 'write one {"text": "..."} per line');
  return documents;
}

function parseRecord(line, place) {
  let record;
  try {
    record = JSON.parse(line);
  } catch {
    throw new FormatError(`${place}: this is not JSON`, 'write one {"text": "..."} per line');
  }
  if (typeof record?.text !== "string") {
    throw new FormatError(`${place}: there is no "text"`, 'write one {"text": "..."} per line');
  }
  if (record.entities === undefined) return { text: record.text, entities: null };
  const length = [...record.text].length;
  const isSpan = ({ start, end, label } = {}) =>
    Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start < end && end <= length && label && typeof label === "string";
  if (!Array.isArray(record.entities) || !record.entities.every(isSpan)) {
    const fix = 'write {"start", "end", "label"} in characters of the text, end exclusive';
    throw new FormatError(`${place}: an entity has no label, or does not lie in the text`, fix);
  }
  return { text: record.text, entities: record.entities.map(({ start, end, label }) => ({ start, end, label })) };
}

/** The text of word/document.xml in a docx file, which is a zip archive. */
async function readDocx(bytes, name) {
  const xml = await readEntry(bytes, "word/document.xml", name);
  const content = new DOMParser().parseFromString(new TextDecoder().decode(xml), "application/xml");
  if (content.querySelector("parsererror")) throw new FormatError(`${name} is damaged`, "save it again as docx or txt");
  const paragraphs = [...content.getElementsByTagNameNS("*", "p")].filter((one) => !closest(one.parentNode, "p"));
  return paragraphs.map(paragraphText).join("\n");
}

function closest(node, name) {
  while (node && node.localName !== name) node = node.parentNode;
  return node;
}

function paragraphText(paragraph) {
  const pieces = { t: (node) => node.textContent, tab: () => "\t", br: () => "\n", cr: () => "\n" };
  const nodes = [...paragraph.getElementsByTagNameNS("*", "*")].filter((node) => closest(node, "r"));
  return nodes.map((node) => pieces[node.localName]?.(node) ?? "").join("");
}

const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;

/** One file of a zip archive, found through the directory at its end. */
async function readEntry(bytes, wanted, name) {
  const damaged = new FormatError(`${name} is not a docx file, or is damaged`, "drop a txt, jsonl or docx file");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    let end = bytes.length - 22;
    while (view.getUint32(end, true) !== END_OF_DIRECTORY) end--;
    let position = view.getUint32(end + 16, true);
    for (let left = view.getUint16(end + 10, true); left > 0; left--) {
      if (view.getUint32(position, true) !== DIRECTORY_ENTRY) throw damaged;
      const lengths = [28, 30, 32].map((field) => view.getUint16(position + field, true));
      const entry = new TextDecoder().decode(bytes.subarray(position + 46, position + 46 + lengths[0]));
      if (entry === wanted) return await inflate(bytes, view, position, name);
      position += 46 + lengths[0] + lengths[1] + lengths[2];
    }
  } catch (error) {
    throw error instanceof FormatError ? error : damaged;
  }
  throw damaged;
}

/** The content of an entry; reading stops at the limit, whatever size the archive claims. */
async function inflate(bytes, view, position, name) {
  const [method, size] = [view.getUint16(position + 10, true), view.getUint32(position + 20, true)];
  const local = view.getUint32(position + 42, true);
  const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  const packed = new Blob([bytes.subarray(start, start + size)]).stream();
  const unpacked = method === 0 ? packed : packed.pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = unpacked.getReader();
  const parts = [];
  let total = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    total += part.value.length;
    if (total > MOST_BYTES) {
      await reader.cancel();
      throw new FormatError(`${name} unpacks to more than ${MOST_BYTES / 1e6} MB`, "save its text as txt");
    }
    parts.push(part.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
