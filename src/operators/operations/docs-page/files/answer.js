import { isLines, mainMediaOf, resolveSchema, responseOf } from "./description.js";
import { element } from "./element.js";
import { jsonText } from "./json-text.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {import("./description.js").Operation} Operation
 */

// The most messages of an endless stream that are kept: enough to read, and few enough to keep the tab quick.
const shownLinesMax = 500;

// 256 KiB: beyond it, colours make a page slow.
const colouredLengthMax = 256 * 1024;

/**
 * Shows the answer to a request as it comes in.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @param {Response} response
 * @param {{ startMs: number, outcome: HTMLElement, details: HTMLElement }} places
 * @returns {Promise<void>} resolves when the answer is over
 */
export async function showAnswer(description, operation, response, { startMs, outcome, details }) {
  const type = response.headers.get("content-type") ?? "";
  const fields = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const header = element("details", {}, [element("summary", {}, ["Header fields"]), terminal([fields])]);
  if (response.ok && (isLines(type) || type.startsWith("text/event-stream"))) {
    const messages = terminal([]);
    details.replaceChildren(messages, header);
    await showMessages(response, messages, (count) => {
      outcome.replaceChildren(...outcomeOf(response, describeCount(count), startMs));
    });
    return;
  }
  const text = isText(type) ? await response.text() : undefined;
  const { meaning, codeName, notes } = readMeaning(description, operation, response, text);
  const body = text === undefined ? await saveLink(response, type) : showText(type, text, notes);
  outcome.replaceChildren(...outcomeOf(response, meaning, startMs, codeName));
  details.replaceChildren(body, header);
}

/** @param {string} type */
function isText(type) {
  return type === "" || /^text\/|[/+](json|xml|x-ndjson|jsonl)\b/.test(type);
}

/**
 * @param {Response} response
 * @param {HTMLElement} shown
 * @param {(count: number) => void} tell
 */
async function showMessages({ body }, shown, tell) {
  let count = 0;
  let rest = "";
  let before = "";
  tell(0);
  for await (const text of chunksOf(body)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (isMessage(line, before)) count++;
      before = line;
    }
    showLines(shown, lines);
    tell(count);
    // A stream that never pauses would leave no time for anything else, such as a click on "Stop".
    await new Promise((resolve) => void setTimeout(resolve));
  }
}

/**
 * @param {HTMLElement} shown
 * @param {string[]} lines
 */
function showLines(shown, lines) {
  shown.append(...lines.slice(-shownLinesMax).map((line) => element("span", { class: "message" }, [`${line}\n`])));
  for (const old of [...shown.children].slice(0, -shownLinesMax)) old.remove();
}

// A named event ends a stream, and so does a line with an error; neither is a message.
/**
 * @param {string} line
 * @param {string} before
 */
function isMessage(line, before) {
  if (line.startsWith("data:")) return !before.startsWith("event:");
  return line.startsWith("{") && !line.startsWith('{"@error"');
}

// Not every browser can iterate over a stream with `for await`.
/** @param {ReadableStream<Uint8Array<ArrayBuffer>> | null} body */
async function* chunksOf(body) {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) yield read.value;
}

/** @param {number} count */
function describeCount(count) {
  return `${count} ${count === 1 ? "message" : "messages"}`;
}

/**
 * @param {Response} response
 * @param {string} meaning
 * @param {number} startMs
 * @param {string} [codeName]
 */
function outcomeOf({ ok, status }, meaning, startMs, codeName) {
  const badge = (/** @type {string} */ text) => element("span", { class: ok ? "badge" : "badge bad" }, [text]);
  return [
    badge(String(status)),
    ...(codeName === undefined ? [] : [badge(codeName)]),
    element("span", { class: "meaning" }, [meaning]),
    element("span", { class: "note" }, [`${(performance.now() - startMs).toFixed(0)} ms`]),
  ];
}

/**
 * Reads what an answer means: the message of an error, or else the description of its status; and the names of those
 * values in it that have one.
 *
 * @param {Description} description
 * @param {Operation} operation
 * @param {Response} response
 * @param {string | undefined} text
 * @returns {{ meaning: string, codeName?: string, notes: Map<string, string> }}
 */
function readMeaning(description, operation, { ok, status, statusText }, text) {
  const described = responseOf(operation, status);
  const meaning = described?.description ?? statusText;
  const record = ok ? undefined : parseObject(text);
  if (record === undefined) return { meaning, notes: new Map() };
  const { properties = {} } = resolveSchema(description, mainMediaOf(described?.content)?.media.schema);
  const named = Object.entries(properties).flatMap(([name, { "x-value-names": names }]) => {
    const valueName = names?.[String(record[name])];
    return valueName === undefined ? [] : [{ member: `${JSON.stringify(name)}:${String(record[name])}`, valueName }];
  });
  const { message } = record;
  return {
    meaning: typeof message === "string" ? message : meaning,
    ...(named[0] !== undefined && { codeName: named[0].valueName }),
    notes: new Map(named.map(({ member, valueName }) => [member, valueName])),
  };
}

/**
 * @param {string | undefined} text
 * @returns {Record<string, unknown> | undefined}
 */
function parseObject(text) {
  try {
    const value = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} type
 * @param {string} text
 * @param {Map<string, string>} notes
 */
function showText(type, text, notes) {
  if (text === "") return element("p", { class: "note" }, ["No body"]);
  const isJson = /[/+]json\b/.test(type) && text.length <= colouredLengthMax;
  return terminal(isJson ? jsonText(text, notes) : [text]);
}

/**
 * @param {Response} response
 * @param {string} type
 */
async function saveLink(response, type) {
  const blob = await response.blob();
  const href = URL.createObjectURL(blob);
  return element("p", {}, [
    element("a", { href, download: "", class: "save" }, ["Save the body"]),
    element("span", { class: "note" }, [` ${blob.size.toLocaleString("en")} bytes, ${type}`]),
  ]);
}

/** @param {(Node | string)[]} content */
function terminal(content) {
  return element("pre", { class: "terminal", tabindex: "0" }, content);
}
