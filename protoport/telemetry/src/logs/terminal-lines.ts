import { styleText } from "node:util";

/** A parsed log line. Only the types of `level`, `time` and `msg` are known. */
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

// Column widths in characters, for the longest level, the longest frequent code, and a duration.
const levelWidth = 5;
const codeWidth = 16;
const durationWidth = 9;

/**
 * Formats a JSON log line for a terminal, with columns for time of day, level and message. A call's line also has
 * columns for its status, code, duration and target. All other fields follow as `name=value`, and an error's stack
 * follows on separate lines.
 *
 * Control characters are escaped, so that no client can move the cursor or colour the screen.
 */
export function toTerminalLine(json: string, colour: boolean): string {
  const record: LogRecord = JSON.parse(json);
  const { level, time, msg = "", err, ...fields } = record;
  const colourText = (style: Style, text: string): string =>
    colour && text !== "" ? styleText(style, text, { validateStream: false }) : text;
  const { text, rest } = msg === "call" ? describeCall(fields) : { text: msg, rest: fields };
  const formattedFields = Object.entries(rest).map(([name, value]) => `${name}=${toText(value)}`);
  const columns = [
    colourText("gray", time.slice("2026-01-31T".length, -1)),
    colourText(levelStyles[level] ?? "bold", level.padEnd(levelWidth)),
    escapeControls(text),
    colourText("gray", formattedFields.join(" ")),
  ];
  return `${columns.join(" ").trimEnd()}\n${colourText("gray", stackOf(err))}`;
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
  return escapeControls(/[\s"=]/.test(text) && typeof value === "string" ? JSON.stringify(text) : text);
}

function stackOf(err: unknown, prefix: string = ""): string {
  if (typeof err !== "object" || err === null) return "";
  const { stack, type, message, cause }: { stack?: string; type?: string; message?: string; cause?: unknown } = err;
  const lines = (stack ?? `${type}: ${message}`).split("\n").map((line) => `  ${escapeControls(line)}\n`);
  return `${prefix}${lines.join("")}${stackOf(cause, "  caused by\n")}`;
}

// Escapes control characters, line separators and characters that change the text direction.
function escapeControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}
