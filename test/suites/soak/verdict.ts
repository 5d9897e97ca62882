import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Usage } from "./service.ts";

/** MiB. An idle server has 100, one with 64 concurrent calls 190 (docs/how-to/proxy.md); twice of that is a leak. */
const residentMiBMax = 400;

/** Open files after all callers have closed their connections: 30 in an idle server, the others are connections. */
const openFilesMax = 100;

/** MiB that a server may grow in the second half, which begins just after its start. */
const growthMiBMax = 150;

/** Lines that a log must not have: stack traces, also in JSON, and failures of Node itself. */
const forbidden = /^\s+at \S.*:\d+:\d+\)?$|\\n\s+at |uncaught|unhandled|ERR_HANDLER_FAILED|FATAL ERROR/im;

/** Returns a sentence for each log in a folder with a forbidden line. */
export function checkLogs(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".log"))
    .flatMap((name) => {
      const line = readFileSync(join(folder, name), "utf8")
        .split("\n")
        .find((each) => forbidden.test(each));
      return line === undefined ? [] : [`${name} has the line ${line.slice(0, 1_000)}`];
    });
}

/** Returns a sentence for each resource of a server that grows without bound. */
export function checkUsage(name: string, before: Usage, after: Usage): readonly string[] {
  const { residentMiB, openFiles } = after;
  return [
    ...(residentMiB > residentMiBMax ? [`${name} has ${residentMiB} MiB of memory`] : []),
    ...(residentMiB - before.residentMiB > growthMiBMax
      ? [`${name} grew from ${before.residentMiB} to ${residentMiB} MiB of memory`]
      : []),
    ...(openFiles > openFilesMax ? [`${name} has ${openFiles} open files`] : []),
  ];
}
