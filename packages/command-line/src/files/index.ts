/**
 * How is a file read that an operator names, such as a key, a certificate or a configuration? Only regular files are
 * read, because reading a named pipe without a writer would block the process.
 */
export { readRegularFile, readRegularFileSync } from "./regular-file.ts";
