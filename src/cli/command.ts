import type { ParseArgsOptionsConfig } from "node:util";

/** The environment of a command, passed in so that commands can also run inside a test. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Standard input. */
  readonly input: () => AsyncIterable<Uint8Array>;
  readonly out: (line: string) => void;
  /** Writes text to standard output as it is, and resolves when more can be written. */
  readonly write: (text: string) => Promise<void>;
  readonly err: (line: string) => void;
  /** Shows a line that the next one replaces; `undefined` when standard error is not a terminal. */
  readonly progress: ((line: string) => void) | undefined;
}

/** Flags by name, as returned by `parseArgs` of node:util: text, `true`, or a list for a repeatable flag. */
export type Flags = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Returns the text of a flag, or `undefined` if it was not given. */
export function textOf(flag: Flags[string]): string | undefined {
  return typeof flag === "string" ? flag : undefined;
}

/** A command of the command line. */
export interface Command {
  /** Its words, for example "token create". */
  readonly name: string;
  /** The rest of the usage line, for example "NAME [--scope S]". */
  readonly synopsis: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly options: ParseArgsOptionsConfig;
  /** The least and the most arguments. */
  readonly positionals: readonly [least: number, most: number];
  /** Returns the lines of `--help` below the usage line. */
  readonly help: () => readonly string[];
  /**
   * Runs the command and returns the exit code.
   *
   * @throws UsageError when the arguments contradict each other, ConfigurationError when a setting is wrong; any other
   * error is a failure
   */
  readonly run: (flags: Flags, positionals: readonly string[], terminal: Terminal) => Promise<number>;
}

/** The command line is wrong; the message says why in one sentence. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The exit codes. 78 is EX_CONFIG of sysexits.h; shells use 2 for wrong usage. */
export const exitCode = {
  ok: 0,
  /** A correct command failed. */
  failure: 1,
  /** The command line is wrong. */
  usage: 2,
  /** A setting is missing, wrong, or contradicts another. */
  configuration: 78,
} as const;
