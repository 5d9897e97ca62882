/** How is a file read that an operator names, such as a key? A named pipe without a writer would block the process. */
export { readRegularFile, readRegularFileSync } from "./regular-file.ts";
