import { type Log, type LogLevel, openLog } from "../../../telemetry/src/logs/log.ts";

/** A log that collects its lines. */
export interface LogLines {
  readonly log: Log;
  /** Returns the parsed lines so far. */
  readonly lines: () => Record<string, unknown>[];
  /** Returns the lines so far, as written. */
  readonly text: () => string;
}

/** Opens a log whose lines a test can read. */
export function openLogLines(level: LogLevel): LogLines {
  const written: string[] = [];
  const log = openLog(level, { write: (line) => void written.push(line) });
  const lines = (): Record<string, unknown>[] => written.map((line): Record<string, unknown> => JSON.parse(line));
  return { log, lines, text: () => written.join("") };
}
