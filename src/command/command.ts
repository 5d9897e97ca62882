/** The environment of a command. Passed as an argument, so that tests can run commands in their own process. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Standard input. */
  readonly input: () => AsyncIterable<Uint8Array>;
  readonly out: (line: string) => void;
  /** Writes text to standard output unchanged, and resolves when more can be written. */
  readonly write: (text: string) => Promise<void>;
  readonly err: (line: string) => void;
  /**
   * Shows a progress line, which the next progress line replaces; `undefined` when standard error is not a terminal.
   */
  readonly progress: ((line: string) => void) | undefined;
}

/** A flag of a command. */
export interface Flag {
  /** The placeholder for its value in the help, such as "FILE". A flag without one is boolean. */
  readonly value?: string;
  /** A short description for the help. */
  readonly about: string;
  /** Whether it can be repeated. */
  readonly multiple?: boolean;
}

/** An argument of a command that is not a flag (POSIX, Utility Conventions 12.1). */
export interface Operand {
  /** Its placeholder in the help, such as "FILE". */
  readonly name: string;
  /** A short description for the help. */
  readonly about: string;
  readonly optional?: boolean;
}

/** The flags of a command line by name, as `parseArgs` of node:util returns them: a string, `true`, or an array. */
export type ParsedFlags = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Returns the value of a flag, or `undefined` if it is missing. */
export function textOf(flag: ParsedFlags[string]): string | undefined {
  return typeof flag === "string" ? flag : undefined;
}

/** A command of the command line. The help and the man page are generated from it. */
export interface Command {
  /** One or more words, for example "token create". */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly operands?: readonly Operand[];
  readonly flags?: Readonly<Record<string, Flag>>;
  /** Whether the command accepts the settings of the server, and whether its help lists them. */
  readonly settings?: "listed" | "accepted";
  /** More lines for its help, below the flags. */
  readonly notes?: readonly string[];
  /**
   * Runs the command and returns the exit code.
   *
   * @throws UsageError when the arguments are invalid, ConfigurationError when a setting is invalid; any other error is a
   * failure of the command
   */
  readonly run: (flags: ParsedFlags, operands: readonly string[], terminal: Terminal) => Promise<number>;
}

/** The error for an invalid command line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The exit codes. 74 and 78 are EX_IOERR and EX_CONFIG of sysexits.h; shells use 2 for invalid usage. */
export const exitCode = {
  ok: 0,
  /** A valid command failed. */
  failure: 1,
  /** The command line is invalid. */
  usage: 2,
  /** The store of a server has failed, and only a restart can fix it. */
  storeFailed: 74,
  /** A setting is missing, invalid, or contradicts another. */
  configuration: 78,
} as const;
