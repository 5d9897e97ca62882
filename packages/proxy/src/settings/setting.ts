import type { Located } from "./located.ts";

/** Receives a problem: the value that is wrong, and the rest of the message, such as `must be text, got 5`. */
export type ReportProblem = (at: Located, problem: string) => void;

/** A value type: how values are read, and how the reference page and the JSON Schema describe them. */
export interface SettingType<T> {
  /** A short name for the reference page, such as `integer`. */
  readonly label: string;
  readonly schema: JsonSchema;
  /** The settings for a mapping, or for each item in a mapping list. */
  readonly members?: Members;
  /** Whether the members belong to list items. */
  readonly isList?: boolean;
  /** Whether values are or contain secrets, which messages must not show. */
  readonly isSecret?: boolean;
  /** Reads a value. Reports each problem, and then returns `undefined`. */
  readonly read: (at: Located, report: ReportProblem) => T | undefined;
}

/** A JSON Schema (draft 2020-12). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A command-line flag that sets a setting. Flags for list items set every item. */
export interface SettingFlag {
  /** The name without dashes. */
  readonly name: string;
  /** Its value's placeholder in the help, such as `FILE`, or `undefined` for a flag that sets {@link value}. */
  readonly placeholder?: string;
  /** A flag's value without a placeholder. Default `true`. */
  readonly value?: string | boolean;
  /** Whether it can be repeated. */
  readonly multiple?: boolean;
  /** Its sentence in the help, if the setting's does not fit. */
  readonly about?: string;
  /**
   * Returns the setting's value for all flag values, or `undefined` to leave it unset. `members` are the settings in
   * the mapping that contains it. Defaults to the value itself, or a list with all values.
   */
  readonly toValue?: (
    texts: readonly string[],
    path: string,
    members: ReadonlyMap<string, Located>,
  ) => Located["value"] | Error | undefined;
}

/** A setting: type, default, sentence and flags. Its name is the key in its {@link Members}. */
export interface Setting {
  readonly type: SettingType<unknown>;
  /** One sentence for the reference page, the JSON Schema and `--help`. */
  readonly about: string;
  readonly flags?: readonly SettingFlag[];
  /** The value if it is not set. */
  readonly fallback?: unknown;
  readonly required?: true;
  /** Whether an absent mapping is read as an empty one, so that its settings get their defaults. */
  readonly implied?: true;
}

/** A mapping's settings, by name. */
export type Members = Readonly<Record<string, Setting>>;

/**
 * The settings for an object's members. A member that can be `undefined` is optional, and all others are required, have
 * a default or are implied.
 */
export type MembersOf<T> = {
  readonly [Name in keyof T]-?: Setting & {
    readonly type: SettingType<NonNullable<T[Name]>>;
  } & (undefined extends T[Name]
      ? { readonly fallback?: undefined }
      : { readonly fallback: T[Name] } | { readonly required: true } | { readonly implied: true });
};
