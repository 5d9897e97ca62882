import { type Log, type LogLevel, openLog } from "../../../telemetry/src/logs/log.ts";

export interface LogLines {
  readonly log: Log;
  readonly lines: () => Record<string, unknown>[];
  readonly text: () => string;
}

export function openLogLines(level: LogLevel): LogLines {
  const written: string[] = [];
  const log = openLog(level, { write: (line) => void written.push(line) });
  const lines = (): Record<string, unknown>[] => written.map((line): Record<string, unknown> => JSON.parse(line));
  return { log, lines, text: () => written.join("") };
}
