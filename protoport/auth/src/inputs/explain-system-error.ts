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
