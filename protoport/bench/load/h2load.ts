import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { originOf, percentilesOf, type Load, type LoadShape } from "./load.ts";
import { numberIn, runTool, secondsIn, withFolder } from "./tool.ts";

/** Returns an h2load load over HTTP/2, with one thread on one core. The body is sent from a file. */
export function h2loadLoad(shape: LoadShape): Load {
  return (port, durationS) =>
    withFolder(async (folder) => {
      const body = join(folder, "request.bin");
      const log = join(folder, "requests.tsv");
      writeFileSync(body, shape.body ?? "");
      // h2load cannot send an empty file, and sends GET without a file, so the method is set by a field.
      const data = shape.body === undefined ? [`-H:method: ${shape.httpMethod}`] : [`-d${body}`];
      const header = Object.entries(shape.header).map(([name, value]) => `-H${name}: ${value}`);
      const concurrency = [`-c${String(shape.connections)}`, `-m${String(shape.streams)}`];
      const command = ["h2load", ...concurrency, "-t1", `-D${String(durationS)}`] as const;
      const url = originOf(shape, port) + shape.path;
      const output = await runTool([...command, ...data, `--log-file=${log}`, ...header, url], durationS);
      return {
        requests: numberIn(output, /(\d+) done/),
        failures: numberIn(output, /(\d+) failed/) + numberIn(output, /(\d+) timeout/),
        durationS: secondsIn(output, /finished in ([\d.]+)(us|ms|s|m)/),
        latencyUs: percentilesOf(latenciesIn(readFileSync(log, "latin1"))),
      };
    });
}

// Each line has a request's start time, status and latency in µs.
function latenciesIn(log: string): Float64Array {
  return Float64Array.from(log.trimEnd().split("\n"), (line) => Number(line.slice(line.lastIndexOf("\t") + 1)));
}
