/** A command's flag. */
export interface Flag {
  /** The placeholder for the flag's value in the help, such as "FILE". A flag without a placeholder is boolean. */
  readonly value?: string;
  /** A short description for the help. */
  readonly about: string;
  /** Whether the flag can be repeated. */
  readonly multiple?: boolean;
}

/** A command argument that is not a flag (POSIX, Utility Conventions 12.1). */
export interface Operand {
  /** The operand's placeholder in the help, such as "FILE". */
  readonly name: string;
  /** A short description for the help. */
  readonly about: string;
  readonly optional?: boolean;
}

/** Flag values by name, as returned by `parseArgs`: a string, `true`, or an array for a repeatable flag. */
export type ParsedFlags = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Returns a flag's value, or `undefined` if it is missing. */
export function textOf(flag: ParsedFlags[string]): string | undefined {
  return typeof flag === "string" ? flag : undefined;
}

/** Returns a repeatable flag's values, or an empty array if the flag is missing. */
export function textsOf(flag: ParsedFlags[string]): readonly string[] {
  return flag === undefined ? [] : [flag].flat().map(String);
}

/** Flags for settings that several commands accept. */
export interface SettingFlags {
  readonly flags: Readonly<Record<string, Flag>>;
  /** Lines for the command's help, below its flags. */
  readonly help: readonly string[];
}

/**
 * A command of a program. The command's help is generated from this object. @typeParam Terminal - what the program
 * passes to commands
 */
export interface CommandOf<Terminal> {
  /** One or more words, for example "token create". */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly operands?: readonly Operand[];
  readonly flags?: Readonly<Record<string, Flag>>;
  readonly settings?: SettingFlags;
  /** More lines for the command's help, below the flags. */
  readonly notes?: readonly string[];
  /**
   * Runs the command and returns the exit code.
   *
   * @throws UsageError for invalid arguments; {@link Program.fail} reports any other error
   */
  readonly run: (flags: ParsedFlags, operands: readonly string[], terminal: Terminal) => Promise<number>;
}

/** A program with commands. */
export interface Program<Terminal> {
  /** The name of the executable. */
  readonly name: string;
  /** A phrase that describes what the program does. */
  readonly about: string;
  readonly version: string;
  readonly commands: readonly CommandOf<Terminal>[];
  /** The command that runs if the first word is missing or a flag. By default, no command runs. */
  readonly defaultCommand?: CommandOf<Terminal>;
  /** The exit codes of all commands, with their meanings. */
  readonly exitCodes: Readonly<Record<number, string>>;
  /** Reports a command error, and returns the exit code. */
  readonly fail: (reason: unknown, terminal: Terminal) => number;
}

/** The error for an invalid command line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Returns a command's flags by name, including the flags for settings if the command accepts them. */
export function flagsOf({
  flags = {},
  settings,
}: Pick<CommandOf<never>, "flags" | "settings">): Readonly<Record<string, Flag>> {
  return { ...flags, ...settings?.flags };
}
