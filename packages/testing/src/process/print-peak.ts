/** Loaded before a program, prints the most memory that it had, as its last line of errors. */
import { writeSync } from "node:fs";

process.on("exit", () => {
  writeSync(2, `peak ${process.resourceUsage().maxRSS} KiB\n`);
});
