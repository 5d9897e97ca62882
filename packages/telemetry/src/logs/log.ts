import { createRequire } from "node:module";
import type { DestinationStream, Logger } from "pino";
import type { LogErrorCode } from "./error-code.ts";
import { LineOutput } from "./line-output.ts";
import { toTerminalLine } from "./terminal-lines.ts";

/** The values of `LOG_LEVEL`, from none to all. */
export const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;

/** One of {@link logLevels}. */
export type LogLevel = (typeof logLevels)[number];

/**
 * A structured log: JSON lines with a level, a time and fields. It is the part of pino's interface that is used here.
 */
export type Log = Pick<Logger, Exclude<LogLevel, "silent"> | "isLevelEnabled">;

/** A log that discards everything. */
export const silentLog: Log = {
  fatal: nothing,
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  trace: nothing,
  isLevelEnabled: () => false,
};

function nothing(): void {}

const require = createRequire(import.meta.filename);

/** The depth to which the causes of an error are logged: enough for a driver's error within a store's. */
const causeDepthMax = 5;

/**
 * Opens a log: one JSON object per line, times as RFC 3339 in UTC, levels by name. On a terminal the lines are for a
 * person, in columns, and in colour unless `NO_COLOR` is set.
 *
 * Writing never holds up a call, and the lines that wait for a reader are bounded: see {@link LineOutput}.
 *
 * @param destination - default standard error, which leaves standard output to the results of commands
 */
export function openLog(level: LogLevel, destination: DestinationStream = standardError.destinations.lines): Logger {
  return loadPino().pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination,
  );
}

/** Loads pino with the first log: it takes 8 ms, which a server without a log need not pay. */
function loadPino(): typeof import("pino") {
  try {
    return require("pino");
  } catch (reason) {
    const isMissing = reason instanceof Error && reason.message.startsWith("Cannot find module 'pino'");
    throw isMissing ? new Error("openLog requires pino: npm install pino@^10.4.0", { cause: reason }) : reason;
  }
}

/** Opens a log like {@link openLog} whose lines are kept when the lines of others are dropped. */
export function openReserveLog(
  level: LogLevel,
  destination: DestinationStream = standardError.destinations.reserve,
): Logger {
  return openLog(level, destination);
}

/** The two ways into one output. */
interface LogDestinations {
  readonly lines: DestinationStream;
  /** For lines that are kept when the others are dropped. */
  readonly reserve: DestinationStream;
}

/** The output to standard error: one per process, because its listeners are never removed. Opened by the first log. */
class StandardError {
  #destinations: LogDestinations | undefined;

  get destinations(): LogDestinations {
    return (this.#destinations ??= openDestinations(new LineOutput(process.stderr, lostLine)));
  }
}

const standardError = new StandardError();

function openDestinations(output: LineOutput): LogDestinations {
  const { stderr } = process;
  if (!stderr.isTTY) return { lines: output, reserve: output.reserve };
  // `hasColors` heeds NO_COLOR, and the abilities of the terminal.
  const colour = stderr.hasColors();
  const forPeople = (to: DestinationStream): DestinationStream => ({
    write: (json) => to.write(toTerminalLine(json, colour)),
  });
  const flush = output.flush.bind(output);
  return { lines: Object.assign(forPeople(output), { flush }), reserve: forPeople(output.reserve) };
}

function lostLine(lost: number): string {
  const errorCode: LogErrorCode = "ERR_LOG_LINES_LOST";
  const msg = "log lines dropped: they were not read fast enough";
  return `${JSON.stringify({ level: "error", time: new Date().toISOString(), errorCode, lost, msg })}\n`;
}

interface ErrorDescription {
  readonly type: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: ErrorDescription;
}

// Only the standard properties of errors. Others may contain the request, and with it a credential.
function describeError(reason: unknown, depth: number = 0): ErrorDescription {
  if (!(reason instanceof Error)) return { type: typeof reason, message: String(reason) };
  return {
    type: reason.name,
    message: reason.message,
    ...(reason.stack === undefined ? {} : { stack: reason.stack }),
    ...(reason.cause === undefined || depth >= causeDepthMax ? {} : { cause: describeError(reason.cause, depth + 1) }),
  };
}
