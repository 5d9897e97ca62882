import type { ParseArgsOptionsConfig } from "node:util";

/** The world as a command sees it; handed in, so that a command can be run inside a test as well. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Standard input, as it comes. */
  readonly input: () => AsyncIterable<Uint8Array>;
  readonly out: (line: string) => void;
  /** Writes to standard output as it is, and resolves when more may be written. */
  readonly write: (text: string) => Promise<void>;
  readonly err: (line: string) => void;
  /** Shows a line that the next one replaces; `undefined` when nobody is looking. */
  readonly progress: ((line: string) => void) | undefined;
}

/** Flags by name, as `parseArgs` of node:util gives them: text, `true`, or a list of a flag that may be repeated. */
export type Flags = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Returns the text of a flag that takes one, or `undefined` when it was not given. */
export function textOf(flag: Flags[string]): string | undefined {
  return typeof flag === "string" ? flag : undefined;
}

/** One command of the command line. */
export interface Command {
  /** The words that call it, for example "token create". */
  readonly name: string;
  /** What follows the words in the usage line, for example "NAME [--scope S]". */
  readonly synopsis: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly options: ParseArgsOptionsConfig;
  /** How many words may follow the name: the least and the most. */
  readonly positionals: readonly [least: number, most: number];
  /** Lines for `--help` of this command, below the usage line. */
  readonly help: () => readonly string[];
  /**
   * Does it, and returns the exit code once all is done.
   *
   * @throws UsageError when the command line contradicts itself, ConfigurationError when a setting is
   * wrong; anything else thrown is a failure
   */
  readonly run: (flags: Flags, positionals: readonly string[], terminal: Terminal) => Promise<number>;
}

/** The command line makes no sense; the message says why in one sentence. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
