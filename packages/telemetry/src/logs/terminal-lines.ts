import { styleText } from "node:util";

/** A parsed line of the log; only the types of its level, time and text are known. */
interface LogRecord extends Readonly<Record<string, unknown>> {
  readonly level: string;
  readonly time: string;
  readonly msg?: string;
}

type Style = Parameters<typeof styleText>[0];

const levelStyles: Readonly<Record<string, Style>> = {
  fatal: ["red", "bold"],
  error: "red",
  warn: "yellow",
  info: "green",
  debug: "cyan",
  trace: "gray",
};

// The lengths of the longest level, of the longest of the frequent codes, and of a duration.
const levelWidth = 5;
const codeWidth = 16;
const durationWidth = 9;

/**
 * Returns a line of the log, which is one JSON object, in columns for a person: time of day, level and text. A call has
 * its status, code, duration and target in columns of their own; all other fields follow as `name=value`, the stack of
 * an error on lines of its own.
 *
 * No text of a client can move the cursor or colour the screen: control characters are escaped.
 */
export function toTerminalLine(json: string, colour: boolean): string {
  const record: LogRecord = JSON.parse(json);
  const { level, time, msg = "", err, ...fields } = record;
  const paint = (style: Style, text: string): string =>
    colour && text !== "" ? styleText(style, text, { validateStream: false }) : text;
  const { text, rest } = msg === "call" ? describeCall(fields) : { text: msg, rest: fields };
  const named = Object.entries(rest).map(([name, value]) => `${name}=${toText(value)}`);
  const columns = [
    paint("gray", time.slice("2026-01-31T".length, -1)),
    paint(levelStyles[level] ?? "bold", level.padEnd(levelWidth)),
    printable(text),
    paint("gray", named.join(" ")),
  ];
  return `${columns.join(" ").trimEnd()}\n${paint("gray", stackOf(err))}`;
}

function describeCall(fields: Readonly<Record<string, unknown>>): { text: string; rest: object } {
  const { httpStatus, code, durationMs, httpMethod, path, procedure: _, ...rest } = fields;
  const columns = [
    String(httpStatus).padStart(3),
    (typeof code === "string" ? code : "-").padEnd(codeWidth),
    `${Number(durationMs).toFixed(1)} ms`.padStart(durationWidth),
    `${String(httpMethod)} ${String(path)}`,
  ];
  return { text: columns.join(" "), rest };
}

function toText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return printable(/[\s"=]/.test(text) && typeof value === "string" ? JSON.stringify(text) : text);
}

function stackOf(err: unknown, prefix: string = ""): string {
  if (typeof err !== "object" || err === null) return "";
  const { stack, type, message, cause }: { stack?: string; type?: string; message?: string; cause?: unknown } = err;
  const lines = (stack ?? `${type}: ${message}`).split("\n").map((line) => `  ${printable(line)}\n`);
  return `${prefix}${lines.join("")}${stackOf(cause, "  caused by\n")}`;
}

// Control characters, and those that change the direction of a line.
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}
