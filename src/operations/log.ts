import { createRequire } from "node:module";
import type { DestinationStream, Logger } from "pino";
import { LineOutput } from "./line-output.ts";

/** The levels of `LOG_LEVEL`, from none to all. */
export const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;

/** One of {@link logLevels}. */
export type LogLevel = (typeof logLevels)[number];

/** A structured log: JSON lines with a level, a time and fields. As much of pino's as is used here. */
export type Log = Pick<Logger, Exclude<LogLevel, "silent"> | "isLevelEnabled" | "flush">;

/** The log of a server that logs nowhere. */
export const silentLog: Log = {
  fatal: nothing,
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  trace: nothing,
  flush: nothing,
  isLevelEnabled: () => false,
};

function nothing(): void {}

const require = createRequire(import.meta.filename);

/** How many causes below an error are written; enough for a driver's error inside a store's. */
const causeDepthMax = 5;

/**
 * Opens the log: one JSON object a line, times as RFC 3339 in UTC, levels by name.
 *
 * Writing never holds up a call, and what waits for a reader is bounded: see {@link LineOutput}.
 *
 * @param destination - where lines go; standard error when left out, so that standard output stays
 * for what a command was asked to print
 */
export function openLog(level: LogLevel, destination?: DestinationStream): Logger {
  // Loaded with the first log: it takes 8 ms, and a server that is embedded without a log starts sooner.
  const { pino }: typeof import("pino") = require("pino");
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination ?? standardError(),
  );
}

let lines: LineOutput | undefined;

/** One for the process: its listeners last as long as that does. */
function standardError(): LineOutput {
  return (lines ??= new LineOutput(process.stderr, lostLine));
}

function lostLine(lost: number): string {
  return `${JSON.stringify({ level: "error", time: new Date().toISOString(), lost, msg: "lines of the log were lost: nobody took them" })}\n`;
}

interface ErrorDescription {
  readonly type: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: ErrorDescription;
}

// Only what an Error always has. Other properties may hold the request, and with it a credential.
function describeError(reason: unknown, depth: number = 0): ErrorDescription {
  if (!(reason instanceof Error)) return { type: typeof reason, message: String(reason) };
  return {
    type: reason.name,
    message: reason.message,
    ...(reason.stack === undefined ? {} : { stack: reason.stack }),
    ...(reason.cause === undefined || depth >= causeDepthMax ? {} : { cause: describeError(reason.cause, depth + 1) }),
  };
}
