import { type HttpResponse, NoResponse } from "../../../../conformance/runner/index.ts";

/** The parts of a response that clients rely on. */
export interface ResponseView {
  readonly status: number;
  /** The media type without parameters. */
  readonly type: string;
  /** The message, an error's code, or text. JSON has sorted members. */
  readonly body: string;
}

/** Returns what is compared, which excludes dates, member order, white space, and error texts. */
export function viewOf(response: HttpResponse | NoResponse): ResponseView {
  if (response instanceof NoResponse) return { status: 0, type: "", body: response.kind };
  const { status, header, body } = response;
  const [, field = ""] = header.find(([name]) => name === "content-type") ?? [];
  const type = field.split(";", 1)[0]?.trim() ?? "";
  const values = parse(body.toString("utf8"));
  // Clients depend on an error's status and code, but its text is not part of any contract.
  if (status >= 400) return { status, type, body: values === undefined ? "text" : `code ${codeOf(values[0])}` };
  return { status, type, body: values === undefined ? body.toString("utf8") : values.map(toText).join("\n") };
}

function parse(text: string): readonly unknown[] | undefined {
  if (text === "") return [];
  try {
    return [JSON.parse(text)];
  } catch {
    try {
      return text
        .trim()
        .split("\n")
        .map((line): unknown => JSON.parse(line));
    } catch {
      return undefined;
    }
  }
}

const codeOf = (value: unknown): string =>
  isObject(value) && "code" in value ? JSON.stringify(value["code"]) : "none";

const toText = (value: unknown): string => JSON.stringify(sorted(isObject(value) ? withMessage(value) : value));

/** Parses the member `message`, which Echo responses contain as JSON text with random white space. */
function withMessage(echo: Readonly<Record<string, unknown>>): unknown {
  const { rpc, message } = echo;
  return typeof rpc === "string" && typeof message === "string" ? { rpc, message: parse(message)?.[0] } : echo;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const names = Object.keys(value).toSorted((one, other) => one.localeCompare(other));
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
