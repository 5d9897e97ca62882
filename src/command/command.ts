import type { CommandOf } from "@protoport/command-line";

/** A command's environment. The environment is an argument, so that tests can run commands in their own process. */
export interface PlantTerminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Calls a function on each SIGHUP, and immediately if the process has already received a SIGHUP. */
  readonly onHangup: (reload: () => void) => void;
  /** Resolves at the first SIGTERM or SIGINT. Only a second signal terminates the process. */
  readonly stopSignal: () => Promise<NodeJS.Signals>;
  /** Returns standard input. Reading fails once the signal aborts. */
  readonly input: (signal: AbortSignal) => AsyncIterable<Uint8Array>;
  readonly out: (line: string) => void;
  /** Writes text to standard output unchanged. Resolves when standard output accepts more text. */
  readonly write: (text: string) => Promise<void>;
  readonly err: (line: string) => void;
  /** Shows a progress line, which replaces the previous line. Undefined if standard error is not a terminal. */
  readonly progress: ((line: string) => void) | undefined;
}

/** A `plantstore` command. */
export type Command = CommandOf<PlantTerminal>;

/** The exit codes. 74 and 78 are EX_IOERR and EX_CONFIG in sysexits.h. Shells use 2 for invalid usage. */
export const exitCode = {
  ok: 0,
  failure: 1,
  /** The command line is invalid. */
  usage: 2,
  /** A server's store has failed, and only a restart can fix the store. */
  storeFailed: 74,
  /** A setting is missing or invalid, or contradicts another setting. */
  configuration: 78,
  /** SIGINT interrupted a command. As in shells, the code is 128 plus the signal's number. */
  interrupted: 130,
  /** SIGTERM interrupted a command. */
  terminated: 143,
} as const;

const unitsMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };

/** Parses "30m", "24h", "90d" or "2w" to milliseconds. Returns `undefined` for any other text. */
export function parseDurationMs(text: string): number | undefined {
  // Accepts at most five digits, because 99999w (1,900 years) is within the range of Date.
  const [, count, unit = ""] = /^([1-9]\d{0,4})([mhdw])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (unitsMs[unit] ?? Number.NaN);
}

// Uses no Intl.NumberFormat, because creating one takes as long as loading half the modules.
/** Returns an integer with commas as thousands separators. */
export function formatInteger(number: number): string {
  return number.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/** Starts a clock. Returns a function that returns the elapsed time, such as "3.2 s". */
export function startClock(): () => string {
  const startMs = performance.now();
  return () => `${((performance.now() - startMs) / 1_000).toFixed(1)} s`;
}

import manifest from "../../package.json" with { type: "json" };

/** Returns the version of this package. The build inlines the version from package.json. */
export function packageVersion(): string {
  return manifest.version;
}
