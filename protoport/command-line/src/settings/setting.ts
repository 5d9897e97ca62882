import type { Located } from "./located.ts";

/** Reports a wrong value. The message follows the setting's name, as in `must be text, got 5`. */
export type ReportProblem = (at: Located, problem: string) => void;

/** A setting's type, which reads values and describes valid values for the reference page and the JSON Schema. */
export interface SettingType<T> {
  /** A short name for the reference page, such as `integer`. */
  readonly label: string;
  readonly schema: JsonSchema;
  /** The settings for a mapping, or for each item in a mapping list. */
  readonly members?: Members;
  /** Whether values are lists, with {@link members} for each item. */
  readonly isList?: boolean;
  /** Whether values contain secrets. Error messages must not show these values. */
  readonly isSecret?: boolean;
  /** Reads a value. Reports each problem. Returns `undefined` for an invalid value. */
  readonly read: (at: Located, report: ReportProblem) => T | undefined;
}

/** A JSON Schema (draft 2020-12). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A command-line flag that sets a setting. Flags for list items set every item. */
export interface SettingFlag {
  /** The name without dashes. */
  readonly name: string;
  /** The placeholder for the flag's value in the help, such as `FILE`. Undefined for a flag that sets {@link value}. */
  readonly placeholder?: string;
  /** The value that the flag sets if the flag has no placeholder. Default `true`. */
  readonly value?: string | boolean;
  /** Whether the flag can be repeated. */
  readonly multiple?: boolean;
  /** The flag's description in the help. Defaults to the setting's description. */
  readonly about?: string;
  /**
   * Returns the setting's value for all flag values, or `undefined` to leave the setting unset. `members` are the
   * settings in the parent mapping. By default, the setting gets the flag's value, or a list with all values.
   */
  readonly toValue?: (
    texts: readonly string[],
    path: string,
    members: ReadonlyMap<string, Located>,
  ) => Located["value"] | Error | undefined;
}

/** A setting with its type, default, description and flags. The setting's name is its key in {@link Members}. */
export interface Setting {
  readonly type: SettingType<unknown>;
  /** One sentence for the reference page, the JSON Schema and `--help`. */
  readonly about: string;
  readonly flags?: readonly SettingFlag[];
  /** The value if the setting is not set. */
  readonly fallback?: unknown;
  readonly required?: true;
  /** Whether a missing mapping counts as an empty mapping, so that the settings in it get their defaults. */
  readonly implied?: true;
}

/** The settings in a mapping, by name. */
export type Members = Readonly<Record<string, Setting>>;

/**
 * The settings for an object's members. A setting must be required, implied or have a default, unless the member can be
 * `undefined`.
 */
export type MembersOf<T> = {
  readonly [Name in keyof T]-?: Setting & {
    readonly type: SettingType<NonNullable<T[Name]>>;
  } & (undefined extends T[Name]
      ? { readonly fallback?: undefined }
      : { readonly fallback: T[Name] } | { readonly required: true } | { readonly implied: true });
};
