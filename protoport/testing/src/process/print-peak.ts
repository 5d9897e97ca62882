/** A preloaded module that prints a program's peak memory as the last line on standard error. */
import { writeSync } from "node:fs";

process.on("exit", () => {
  writeSync(2, `peak ${process.resourceUsage().maxRSS} KiB\n`);
});
