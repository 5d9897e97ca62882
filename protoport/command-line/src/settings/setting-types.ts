import { messageOf, toShortLine } from "@protoport/gateway/errors";
import { nearestName } from "@protoport/gateway/options";
import { type Located, memberPath } from "./located.ts";
import type { Members, MembersOf, ReportProblem, SettingType } from "./setting.ts";

/**
 * Text that `read` accepts.
 *
 * @param read - returns the value, or throws an Error whose message follows the setting's name
 */
export function text<T = string>(label?: string, read?: (text: string) => T): SettingType<T>;
export function text(label: string = "text", read: (text: string) => unknown = (each) => each): SettingType<unknown> {
  return {
    label,
    schema: { type: "string" },
    read: (at, report) => {
      if (typeof at.value !== "string") return refuse(at, report, "must be text");
      try {
        return read(at.value);
      } catch (error) {
        report(at, messageOf(error));
        return undefined;
      }
    },
  };
}

/**
 * Text in a format.
 *
 * @param format - what the text must be, for messages, such as `a file mode`
 * @param read - returns the value, or `undefined` for text in another format
 */
export function formatted<T>(label: string, format: string, read: (text: string) => T | undefined): SettingType<T> {
  return text(label, (given) => {
    const value = read(given);
    if (value !== undefined) return value;
    throw new Error(`must be ${format}, got ${quote(given)}`);
  });
}

/** An integer between two bounds, both included. */
export function integer(least: number, most: number): SettingType<number> {
  const isWithin = (value: number): boolean => value >= least && value <= most && Number.isSafeInteger(value);
  return numeric("integer", `between ${least} and ${most}`, { minimum: least, maximum: most }, isWithin);
}

/** A number between two bounds, both included. */
export function number(least: number, most: number): SettingType<number> {
  const isWithin = (value: number): boolean => value >= least && value <= most;
  return numeric("number", `a number between ${least} and ${most}`, { minimum: least, maximum: most }, isWithin);
}

/** A number above 0. */
export function positiveNumber(most: number): SettingType<number> {
  const isWithin = (value: number): boolean => value > 0 && value <= most;
  return numeric("number", `a number above 0 and at most ${most}`, { exclusiveMinimum: 0, maximum: most }, isWithin);
}

function numeric(
  type: "integer" | "number",
  requirement: string,
  bounds: Readonly<Record<string, number>>,
  isWithin: (value: number) => boolean,
): SettingType<number> {
  return {
    label: type,
    schema: { type, ...bounds },
    read: (at, report) => {
      const { value, source } = at;
      // Uses a pattern, because Number() would also accept "", " 7", "0x7" and "1e3".
      const isDigits = source !== undefined && typeof value === "string" && /^(0|[1-9][0-9]*)$/.test(value);
      const read = typeof value === "number" || isDigits ? Number(value) : Number.NaN;
      return isWithin(read) ? read : refuse(at, report, `must be ${requirement}`);
    },
  };
}

/** `true` or `false`. */
export const boolean: SettingType<boolean> = {
  label: "boolean",
  schema: { type: "boolean" },
  read: (at, report) => (typeof at.value === "boolean" ? at.value : refuse(at, report, "must be true or false")),
};

/** A name from a list. */
export function oneOf<const Name extends string>(names: readonly Name[]): SettingType<Name> {
  const requirement = names.length === 2 ? names.join(" or ") : `one of ${names.join(", ")}`;
  return {
    label: names.map((name) => `\`${name}\``).join(", "),
    schema: { enum: names },
    read: (at, report) => {
      const found = names.find((name) => name === at.value);
      return found ?? refuse(at, report, `must be ${requirement}`);
    },
  };
}

/** A list. */
export function list<T>(type: SettingType<T>): SettingType<readonly T[]> {
  return {
    label: type.members === undefined ? `list of ${type.label}` : "list of mappings",
    schema: { type: "array", items: type.schema },
    ...(type.members && { members: type.members, isList: true }),
    isSecret: type.isSecret === true,
    read: (at, report) => {
      if (!Array.isArray(at.value)) return refuse(at, report, "must be a list", type.isSecret);
      const read = at.value.map((item: Located) => type.read(item, report));
      return read.filter((item) => item !== undefined);
    },
  };
}

/** A mapping with any keys. @param keyProblem - returns what a key must be, if the key is not valid */
export function record<T>(
  type: SettingType<T>,
  keyProblem?: (key: string) => string | undefined,
): SettingType<Readonly<Record<string, T>>> {
  return {
    label: `mapping of ${type.label}`,
    schema: { type: "object", additionalProperties: type.schema },
    isSecret: type.isSecret === true,
    read: (at, report) => {
      if (!(at.value instanceof Map)) return refuse(at, report, "must be a mapping", type.isSecret);
      for (const [name, value] of at.value) {
        const problem = keyProblem?.(name);
        if (problem !== undefined) report({ ...value, place: value.keyPlace ?? value.place }, problem);
      }
      const read = [...at.value].map(([name, value]) => [name, type.read(value, report)] as const);
      return Object.fromEntries(read.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
    },
  };
}

/** A mapping with named settings. Unknown keys are refused. Settings without a value have no member. */
export function mapping<T>(members: MembersOf<T>): SettingType<T>;
export function mapping(members: Members): SettingType<unknown> {
  const isSecret = Object.values(members).some(({ type }) => type.isSecret === true);
  const required = Object.keys(members).filter((name) => members[name]?.required === true);
  return {
    label: "mapping",
    schema: {
      type: "object",
      additionalProperties: false,
      properties: Object.fromEntries(
        Object.entries(members).map(([name, { about, type, fallback }]) => [
          name,
          { description: about, ...type.schema, ...(fallback !== undefined && { default: fallback }) },
        ]),
      ),
      ...(required.length > 0 && { required }),
    },
    members,
    isSecret,
    read: (at, report) => {
      const { value } = at;
      if (!(value instanceof Map)) return refuse(at, report, "must be a mapping", isSecret);
      reportUnknown(value, members, report);
      const read = Object.entries(members).map(([name, { type, fallback, required: isRequired, implied }]) => {
        const member = value.get(name) ?? (implied && { ...at, path: memberPath(at.path, name), value: new Map() });
        if (member !== undefined) return [name, type.read(member, report)];
        if (isRequired) report(at, `requires ${name}`);
        return [name, fallback];
      });
      return Object.fromEntries(read.filter(([, member]) => member !== undefined));
    },
  };
}

function reportUnknown(values: ReadonlyMap<string, Located>, members: Members, report: ReportProblem): void {
  const known = Object.keys(members);
  for (const [name, value] of values) {
    if (known.includes(name)) continue;
    const nearest = findByFlag(name, members) ?? nearestName(name, known);
    const hint = nearest === undefined ? `accepted here: ${known.join(", ")}` : `did you mean "${nearest}"?`;
    report({ ...value, place: value.keyPlace ?? value.place }, `is not a setting; ${hint}`);
  }
}

/** Returns a flag's setting, which may be nested, such as `descriptors: reflection` for `--reflection`. */
function findByFlag(flagName: string, members: Members): string | undefined {
  for (const [name, { flags, type }] of Object.entries(members)) {
    const flag = flags?.find((each) => each.name === flagName);
    if (flag !== undefined) return typeof flag.value === "string" ? `${name}: ${flag.value}` : name;
    const nested = type.members && findByFlag(flagName, type.members);
    if (nested !== undefined) return `${name}${type.isList === true ? "[]" : ""}.${nested}`;
  }
  return undefined;
}

/** Reports a value with the wrong type. `isSecret` hides the value. */
function refuse(at: Located, report: ReportProblem, requirement: string, isSecret: boolean = false): undefined {
  report(at, `${requirement}, got ${isSecret ? describeKind(at) : describeValue(at)}`);
  return undefined;
}

/** Describes a value without its content. */
function describeKind({ value }: Located): string {
  if (typeof value === "string") return "text";
  return typeof value === "object" ? describeValue({ value }) : `a ${typeof value}`;
}

/** Describes a value for a message. */
function describeValue({ value }: Pick<Located, "value">): string {
  if (value === null) return "nothing";
  if (typeof value === "string") return quote(value);
  if (typeof value !== "object") return String(value);
  return value instanceof Map ? "a mapping" : "a list";
}

/** Quotes text for a message. Long text is shortened, and users and passwords are removed from URLs. */
export function quote(given: string): string {
  return JSON.stringify(toShortLine(withoutPassword(given)));
}

/** Removes users and passwords from the URLs in a text. */
export function withoutPassword(given: string): string {
  return given.replaceAll(/\/\/[^/?#\s]*@/g, "//…@");
}

/** Returns whether text is an origin. One with a path or capital letters would never match (RFC 6454 §6.2). */
export function isOrigin(given: string): boolean {
  return URL.parse(given)?.origin === given;
}

/** The base URL that clients use. The URL's path is the prefix for all paths. */
export const publicUrl: SettingType<URL> = formatted(
  "URL",
  "an http or https URL without a query, fragment or credentials, such as https://api.example",
  (given) => {
    const url = URL.parse(given);
    const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === "";
    return isPlain && !/[?#]/.test(given) ? url : undefined;
  },
);
