// System messages ("EACCES: permission denied, open 'orders.db'") only help a reader who knows the codes.
const explanations: Readonly<Record<string, (path: string) => string>> = {
  EACCES: (path) => `this user may not read or write ${path}`,
  EPERM: (path) => `this user may not read or write ${path}`,
  EEXIST: (path) => `${path} exists already`,
  ENOENT: (path) => `there is no ${path}, or a folder above it is missing`,
  EISDIR: (path) => `${path} is a folder, not a file`,
  ENOTDIR: (path) => `a part of ${path} is a file, not a folder`,
  ENOSPC: (path) => `there is no room left on the disk of ${path}`,
  EROFS: (path) => `${path} is on a disk that cannot be written`,
};

/** Returns what went wrong: a sentence of our own for errors of the file system, the message of any other error. */
export function explainSystemError(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason);
  const { code, path } = reason as NodeJS.ErrnoException;
  const explain = code !== undefined && Object.hasOwn(explanations, code) ? explanations[code] : undefined;
  return explain === undefined || path === undefined ? reason.message : explain(path);
}
