import { toShortLine } from "@protoport/gateway/errors";

/** A setting's value with its source, for messages. */
export interface Located {
  /** The setting's path, such as `upstreams[0].tls.ca`. The entire file has an empty path. */
  readonly path: string;
  /** Where the value starts, as `file:line:column`, or `undefined` if a {@link source} set the value. */
  readonly place: string | undefined;
  /** Where the value's key starts, for messages about unknown keys. */
  readonly keyPlace: string | undefined;
  /** The flag or environment variable that set the value, such as `--port` or `PORT`. */
  readonly source: string | undefined;
  readonly value: LocatedValue;
}

/** The value in a {@link Located}. Flags can add members to a mapping. */
export type LocatedValue = string | number | boolean | null | bigint | readonly Located[] | Map<string, Located>;

/** Returns the beginning of a message about a value: the source, or the file position and setting path. */
export function subjectOf({ source, place, path }: Pick<Located, "source" | "place" | "path">): string {
  if (source !== undefined) return source;
  const name = path === "" ? "the configuration" : toShortLine(path);
  return place === undefined ? name : `${place}: ${name}`;
}

/** Returns the value at a path. If the value is not set, returns the nearest parent that is set. */
export function findLocated(root: Located, path: string): Located {
  let found = root;
  for (const [, name, index] of path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)) {
    const { value } = found;
    const next =
      value instanceof Map ? value.get(name ?? "") : Array.isArray(value) ? value[Number(index ?? -1)] : undefined;
    if (next === undefined) return found;
    found = next;
  }
  return found;
}

/** Returns a value that is not in a file. A flag or an environment variable sets the value, or sets its members. */
export function ofSource(path: string, source: string | undefined, value: LocatedValue): Located {
  return { path, place: undefined, keyPlace: undefined, source, value };
}

/** Returns the path to a mapping's member. */
export function memberPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
