import { createRequire } from "node:module";
import type { DestinationStream, Logger } from "pino";
import type { LogErrorCode } from "./error-code.ts";
import { LineOutput } from "./line-output.ts";
import { createLogMethod, timeMember } from "./plain-lines.ts";
import { toTerminalLine } from "./terminal-lines.ts";

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
const causeDepthMax = 5;

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
    ...(reason.cause === undefined || depth >= causeDepthMax ? {} : { cause: describeError(reason.cause, depth + 1) }),
  };
}
