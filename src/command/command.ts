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

/** A flag of a command. */
export interface Flag {
  /** The placeholder for its value in the help, such as "FILE". A flag without one is on or off. */
  readonly value?: string;
  /** What it does, in a few words, for the help. */
  readonly about: string;
  /** Whether it may be given several times. */
  readonly multiple?: boolean;
}

/** An argument of a command that is not a flag (POSIX, Utility Conventions 12.1). */
export interface Operand {
  /** Its placeholder in the help, such as "FILE". */
  readonly name: string;
  /** What it is, in a few words, for the help. */
  readonly about: string;
  readonly optional?: boolean;
}

/** The flags that were given, by name, as `parseArgs` of node:util returns them: text, `true`, or a list of texts. */
export type GivenFlags = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Returns the text of a flag, or `undefined` if it was not given. */
export function textOf(flag: GivenFlags[string]): string | undefined {
  return typeof flag === "string" ? flag : undefined;
}

/** A command of the command line. The help and the man page are made from it. */
export interface Command {
  /** Its words, for example "token create". */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly operands?: readonly Operand[];
  readonly flags?: Readonly<Record<string, Flag>>;
  /** Whether it takes the settings of the server, as flags too, and whether its help lists them. */
  readonly settings?: "listed" | "taken";
  /** Further lines for its help, below the flags. */
  readonly notes?: readonly string[];
  /**
   * Runs the command and returns the exit code.
   *
   * @throws UsageError when the arguments contradict each other, ConfigurationError when a setting is wrong; any other
   * error is a failure
   */
  readonly run: (flags: GivenFlags, operands: readonly string[], terminal: Terminal) => Promise<number>;
}

/** The error for a wrong command line; its message says in one sentence what is wrong. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The exit codes. 74 and 78 are EX_IOERR and EX_CONFIG of sysexits.h; shells use 2 for wrong usage. */
export const exitCode = {
  ok: 0,
  /** A correct command failed. */
  failure: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The store of a server has a fault that only a restart can mend. */
  breakdown: 74,
  /** A setting is missing, wrong, or contradicts another. */
  configuration: 78,
} as const;
