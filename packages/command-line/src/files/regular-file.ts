import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/**
 * Flags that open a named pipe without waiting for its writer (POSIX O_NONBLOCK, which Windows does not have). The type
 * is checked after opening, so that the path cannot be replaced in between.
 */
const openFlags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/**
 * Reads a regular file without blocking the process. Symbolic links are followed.
 *
 * @param maxBytes - limits memory if a wrong file is named, such as a disk image
 * @throws Error with the path if the file is not regular, is larger than `maxBytes`, or cannot be read
 */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await open(path, openFlags);
  requireRegular(path, await file.stat(), maxBytes);
  return await file.readFile();
}

/** Reads a file like {@link readRegularFile}, and throws its errors, for callers that cannot wait. */
export function readRegularFileSync(path: string, maxBytes: number): Buffer {
  const descriptor = openSync(path, openFlags);
  try {
    requireRegular(path, fstatSync(descriptor), maxBytes);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function requireRegular(path: string, stats: Stats, maxBytes: number): void {
  if (!stats.isFile()) throw new Error(`${path} is not a regular file`);
  if (stats.size > maxBytes) throw new Error(`${path} is larger than ${maxBytes} bytes`);
}
