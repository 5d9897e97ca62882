import { readRegularFile } from "@protoport/command-line";

/** Reads a regular file as UTF-8. `limitBytes` bounds memory if a wrong file is configured, such as a disk image. */
export async function readTextFile(path: string, limitBytes: number): Promise<ParseResult<string>> {
  return await readRegularFile(path, limitBytes).then((bytes) => parsed(bytes.toString("utf8")), toProblem);
}

/** Converts a `node:fs` error to a problem that contains the path. */
export function toProblem(error: unknown): ParseResult<never> {
  return withProblems(explainSystemError(error));
}

/** Removes the line break, LF or CR LF, with which `echo` and editors end a file. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}

// Node's messages ("EACCES: permission denied, open 'orders.db'") only help a reader who knows the codes.
const explanations: Readonly<Record<string, (path: string) => string>> = {
  EACCES: (path) => `permission denied: this user cannot read or write ${path}`,
  EPERM: (path) => `permission denied: this user cannot read or write ${path}`,
  EEXIST: (path) => `${path} already exists`,
  ENOENT: (path) => `${path} or its parent directory does not exist`,
  EISDIR: (path) => `${path} is a directory, not a file`,
  ENOTDIR: (path) => `a parent of ${path} is a file, not a directory`,
  ENOSPC: (path) => `no space left on the disk of ${path}`,
  EROFS: (path) => `${path} is on a read-only file system`,
};

/** Returns a plain sentence for a file system error, and the error's own message for any other error. */
export function explainSystemError(reason: unknown): string {
  // Connecting to a host name with several addresses fails with one error per address, and no common message.
  if (reason instanceof AggregateError) return reason.errors.map(explainSystemError).join("; ");
  if (!(reason instanceof Error)) return String(reason);
  const { code, path } = reason as NodeJS.ErrnoException;
  const explain = code !== undefined && Object.hasOwn(explanations, code) ? explanations[code] : undefined;
  return explain === undefined || path === undefined ? reason.message : explain(path);
}

/** A string's parsed value, or all its problems. A problem never quotes the string, which may be a misplaced token. */
export type ParseResult<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** Returns the result for a valid string. */
export function parsed<T>(value: T): ParseResult<T> {
  return { kind: "value", value };
}

/** Returns the result for an invalid string. */
export function withProblems(...problems: readonly string[]): ParseResult<never> {
  return { kind: "problems", problems };
}

/** Returns the problems in several results. */
export function problemsOf(results: readonly ParseResult<unknown>[]): readonly string[] {
  return results.flatMap((result) => (result.kind === "problems" ? result.problems : []));
}
