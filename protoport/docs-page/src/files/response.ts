import { responseOf, type Description, isLines, mainMediaOf, type Operation, resolveSchema } from "./description.js";
import { element, collapsible, note, terminal } from "./element.js";
import { jsonText } from "./json-text.js";
import { isMessage, linesOf } from "./stream-lines.js";

/** Maximum stream messages that are shown. The limit keeps the page responsive. */
const maxShownLines = 500;

/** Maximum characters in highlighted JSON. Highlighting a longer text would make the page slow. */
const maxColouredLength = 256 * 1024;

/** The elements that show a response, and the time at which the request was sent. */
interface ResponseView {
  readonly startMs: number;
  readonly outcome: HTMLElement;
  readonly details: HTMLElement;
}

/** Shows the response to a request as it arrives. Resolves when the response is complete. */
export async function showResponse(
  description: Description,
  operation: Operation,
  response: Response,
  { startMs, outcome, details }: ResponseView,
): Promise<void> {
  const type = response.headers.get("content-type") ?? "";
  const fields = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const header = collapsible("Header fields", terminal(fields));
  const show = (meaning: string, codeName?: string): void =>
    outcome.replaceChildren(...outcomeOf(response, meaning, startMs, codeName));
  if (response.ok && (isLines(type) || type.startsWith("text/event-stream"))) {
    const messages = terminal();
    details.replaceChildren(messages, header);
    await showMessages(response, messages, (count) => show(`${count} ${count === 1 ? "message" : "messages"}`));
    return;
  }
  const text = isText(type) ? await response.text() : undefined;
  const { meaning, codeName, notes } = readMeaning(description, operation, response, text);
  const body = text === undefined ? await saveLink(response, type) : showText(type, text, notes);
  show(meaning, codeName);
  details.replaceChildren(body, header);
}

function isText(type: string): boolean {
  return type === "" || /^text\/|[/+](json|xml|x-ndjson|jsonl)\b/.test(type);
}

async function showMessages({ body }: Response, shown: HTMLElement, showCount: (count: number) => void): Promise<void> {
  let count = 0;
  let before = "";
  showCount(0);
  for await (const lines of linesOf(body)) {
    for (const line of lines) {
      if (isMessage(line, before)) count++;
      before = line;
    }
    showLines(shown, lines);
    showCount(count);
    // The timeout lets other events run, such as a click on "Stop". A stream without pauses would block these events.
    await new Promise((resolve) => void setTimeout(resolve));
  }
}

function showLines(shown: HTMLElement, lines: readonly string[]): void {
  shown.append(...lines.slice(-maxShownLines).map((line) => element("span", { class: "message" }, `${line}\n`)));
  for (const oldLine of [...shown.children].slice(0, -maxShownLines)) oldLine.remove();
}

function outcomeOf({ ok, status }: Response, meaning: string, startMs: number, codeName?: string): HTMLElement[] {
  const badges = [String(status), ...(codeName === undefined ? [] : [codeName])];
  return [
    ...badges.map((text) => element("span", { class: ok ? "badge" : "badge bad" }, text)),
    element("span", {}, meaning),
    element("span", { class: "note" }, `${(performance.now() - startMs).toFixed(0)} ms`),
  ];
}

/**
 * Returns the text that explains a response, which is the error message or else the description of the status. For an
 * error, also returns the name of the code, and the names of the error's enum numbers.
 */
function readMeaning(
  description: Description,
  operation: Operation,
  { ok, status, statusText }: Response,
  text: string | undefined,
): { readonly meaning: string; readonly codeName?: string | undefined; readonly notes?: ReadonlyMap<string, string> } {
  const described = responseOf(operation, status);
  const meaning = described?.description ?? statusText;
  const record = ok ? undefined : parseObject(text);
  if (record === undefined) return { meaning };
  const { properties = {} } = resolveSchema(description, mainMediaOf(described?.content)?.media.schema);
  const notes = new Map(
    Object.entries(properties).flatMap(([name, { "x-value-names": names }]) => {
      const valueName = names?.[String(record[name])];
      return valueName === undefined ? [] : [[`${JSON.stringify(name)}:${String(record[name])}`, valueName] as const];
    }),
  );
  const { message } = record;
  const [codeName] = notes.values();
  return { meaning: typeof message === "string" ? message : meaning, codeName, notes };
}

function parseObject(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function showText(type: string, text: string, notes?: ReadonlyMap<string, string>): HTMLElement {
  if (text === "") return note("No body");
  const isJson = /[/+]json\b/.test(type) && text.length <= maxColouredLength;
  return terminal(...(isJson ? jsonText(text, notes) : [text]));
}

async function saveLink(response: Response, type: string): Promise<HTMLElement> {
  const blob = await response.blob();
  const link = element("a", { href: URL.createObjectURL(blob), download: "" }, "Save the body");
  return note(link, ` ${blob.size.toLocaleString("en")} bytes, ${type}`);
}
