import { toShortLine } from "@plantstore/http";

/** A configuration value, with where it was set, for messages. */
export interface Located {
  /** The setting's path, such as `upstreams[0].tls.ca`. Empty for the entire file. */
  readonly path: string;
  /** Where the value starts, as `file:line:column`, or `undefined` if a flag set it. */
  readonly place: string | undefined;
  /** Where its key starts, for unknown keys. */
  readonly keyPlace: string | undefined;
  /** The flag that set it, such as `--port`. */
  readonly flag: string | undefined;
  readonly value: LocatedValue;
}

/** The {@link Located} content. A mapping can be extended by flags. */
export type LocatedValue = string | number | boolean | null | bigint | readonly Located[] | Map<string, Located>;

/** Returns how a message about a value starts: with the flag that set it, or its place and its path. */
export function subjectOf({ flag, place, path }: Pick<Located, "flag" | "place" | "path">): string {
  if (flag !== undefined) return flag;
  const name = path === "" ? "the configuration" : toShortLine(path);
  return place === undefined ? name : `${place}: ${name}`;
}

/** Returns the value with this path, or its nearest parent that is set. */
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

/** Returns a value that a flag sets. */
export function ofFlag(path: string, flag: string, value: LocatedValue): Located {
  return { path, place: undefined, keyPlace: undefined, flag, value };
}

/** Returns the path to a mapping's member. */
export function memberPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
