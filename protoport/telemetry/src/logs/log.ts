import { createRequire } from "node:module";
import { styleText } from "node:util";
import type { DestinationStream, Logger } from "pino";
import type { LogErrorCode } from "./error-code.ts";
import { LineOutput } from "./line-output.ts";
import { createLogMethod, timeMember } from "./plain-lines.ts";

/** The `LOG_LEVEL` values, from least to most verbose. */
export const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;

/** One of {@link logLevels}. */
export type LogLevel = (typeof logLevels)[number];

/** A structured JSON lines log. The type has the members of pino's `Logger` that are used here. */
export type Log = Pick<Logger, Exclude<LogLevel, "silent"> | "isLevelEnabled">;

/** A log that discards everything. */
export const silentLog: Log = {
  fatal: ignoreError,
  error: ignoreError,
  warn: ignoreError,
  info: ignoreError,
  debug: ignoreError,
  trace: ignoreError,
  isLevelEnabled: () => false,
};

function ignoreError(): void {}

// A bundle in CommonJS has no import.meta.
const require = createRequire(import.meta.filename ?? __filename);

/** The maximum number of nested error causes that are logged. */
const maxCauseDepth = 5;

/**
 * Opens a log with one JSON object per line, RFC 3339 times in UTC and level names. On a terminal, lines are
 * human-readable, in columns, and coloured unless `NO_COLOR` is set.
 *
 * Writing never blocks a call, and the buffer is bounded (see {@link LineOutput}).
 *
 * @param destination - the default is standard error, because commands print their results to standard output
 */
export function openLog(level: LogLevel, destination: DestinationStream = standardError.destinations.lines): Logger {
  const { pino, symbols } = loadPino();
  const log: Logger = pino(
    {
      level,
      base: null,
      timestamp: timeMember,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
      hooks: { logMethod: createLogMethod(symbols, () => log, destination) },
    },
    destination,
  );
  return log;
}

/** Loads pino when the first log is opened, so that a server without a log starts 8 ms sooner. */
function loadPino(): typeof import("pino") {
  try {
    return require("pino");
  } catch (reason) {
    const isMissing = reason instanceof Error && reason.message.startsWith("Cannot find module 'pino'");
    throw isMissing ? new Error("openLog requires pino: npm install pino@^10.4.0", { cause: reason }) : reason;
  }
}

/** Opens a log like {@link openLog}, whose lines are dropped last when the output is congested. */
export function openReserveLog(
  level: LogLevel,
  destination: DestinationStream = standardError.destinations.reserve,
): Logger {
  return openLog(level, destination);
}

/** The two writers to a log's output. */
interface LogDestinations {
  readonly lines: DestinationStream;
  /** The writer for lines that are dropped last. */
  readonly reserve: DestinationStream;
}

/** The output to standard error. A process has only one output, because its listeners are never removed. */
class StandardError {
  #destinations: LogDestinations | undefined;

  get destinations(): LogDestinations {
    return (this.#destinations ??= openDestinations(new LineOutput(process.stderr, formatDropped)));
  }
}

const standardError = new StandardError();

function openDestinations(output: LineOutput): LogDestinations {
  const { stderr } = process;
  if (!stderr.isTTY) return { lines: output, reserve: output.reserve };
  // `hasColors` respects NO_COLOR and the terminal's capabilities.
  const colour = stderr.hasColors();
  const humanReadable = (target: DestinationStream): DestinationStream => ({
    write: (json) => target.write(toTerminalLine(json, colour)),
  });
  const flush = output.flush.bind(output);
  return { lines: Object.assign(humanReadable(output), { flush }), reserve: humanReadable(output.reserve) };
}

function formatDropped(dropped: number): string {
  const errorCode: LogErrorCode = "ERR_LOG_LINES_DROPPED";
  const msg = "log lines dropped: they were not read fast enough";
  return `${JSON.stringify({ level: "error", time: new Date().toISOString(), errorCode, dropped, msg })}\n`;
}

interface ErrorDescription {
  readonly type: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: ErrorDescription;
}

// Logs only an error's standard properties, because other properties may contain the request, including a credential.
function describeError(reason: unknown, depth: number = 0): ErrorDescription {
  if (!(reason instanceof Error)) return { type: typeof reason, message: String(reason) };
  return {
    type: reason.name,
    message: reason.message,
    ...(reason.stack === undefined ? {} : { stack: reason.stack }),
    ...(reason.cause === undefined || depth >= maxCauseDepth ? {} : { cause: describeError(reason.cause, depth + 1) }),
  };
}

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
  const formattedFields = Object.entries(rest).map(([name, value]) => `${name}=${toLoggedText(value)}`);
  const columns = [
    colourText("gray", time.slice("2026-01-31T".length, -1)),
    colourText(levelStyles[level] ?? "bold", level.padEnd(levelWidth)),
    escapeControls(text),
    colourText("gray", formattedFields.join(" ")),
  ];
  return `${columns.join(" ").trimEnd()}\n${colourText("gray", loggedStackOf(err))}`;
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

function toLoggedText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return escapeControls(/[\s"=]/.test(text) && typeof value === "string" ? JSON.stringify(text) : text);
}

function loggedStackOf(err: unknown, prefix: string = ""): string {
  if (typeof err !== "object" || err === null) return "";
  const { stack, type, message, cause }: { stack?: string; type?: string; message?: string; cause?: unknown } = err;
  const lines = (stack ?? `${type}: ${message}`).split("\n").map((line) => `  ${escapeControls(line)}\n`);
  return `${prefix}${lines.join("")}${loggedStackOf(cause, "  caused by\n")}`;
}

// Escapes control characters, line separators and characters that change the text direction.
function escapeControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}
