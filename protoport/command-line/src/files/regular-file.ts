import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/**
 * Flags that open a named pipe without waiting for its writer (POSIX O_NONBLOCK). On Windows, O_NONBLOCK is undefined,
 * which sets no bit. The type of the open file is checked, because the path could be replaced after an earlier check.
 */
const openFlags = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * Reads a regular file without blocking the process. Symbolic links are followed.
 *
 * @param maxBytes - maximum file size, which limits memory if the path is wrong, such as a disk image
 * @throws Error with the path if the file is not regular, is larger than `maxBytes`, or cannot be read
 */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await open(path, openFlags);
  requireRegular(path, await file.stat(), maxBytes);
  return await file.readFile();
}

/** The synchronous version of {@link readRegularFile}. */
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
