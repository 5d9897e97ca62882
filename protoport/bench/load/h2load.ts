import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { originOf, percentilesOf, type Load, type LoadShape } from "./load.ts";
import { numberIn, runTool, secondsIn, withFolder } from "./tool.ts";

/** Returns an h2load load over HTTP/2, with one thread on one core. The body is sent from a file. */
export function h2loadLoad(shape: LoadShape): Load {
  return runH2load(shape, [`-m${String(shape.streams)}`]);
}

/**
 * Returns an h2load load at a fixed rate in requests per second. The load uses HTTP/1.1 for a shape with one stream on
 * each connection, and HTTP/2 for any other shape. Latency is measured from the time when a request is sent.
 */
export function pacedLoad(shape: LoadShape, requestsPerS: number): Load {
  const protocol = shape.streams === 1 ? "--h1" : `-m${String(shape.streams)}`;
  return runH2load(shape, [protocol, `--rps=${String(requestsPerS / shape.connections)}`]);
}

function runH2load(shape: LoadShape, options: readonly string[]): Load {
  return (port, durationS) =>
    withFolder(async (folder) => {
      const body = join(folder, "request.bin");
      const log = join(folder, "requests.tsv");
      writeFileSync(body, shape.body ?? "");
      // h2load cannot send an empty file, and sends GET without a file, so the method is set by a field.
      const data = shape.body === undefined ? [`-H:method: ${shape.httpMethod}`] : [`-d${body}`];
      const header = Object.entries(shape.header).map(([name, value]) => `-H${name}: ${value}`);
      const command = ["h2load", `-c${String(shape.connections)}`, "-t1", `-D${String(durationS)}`] as const;
      const url = originOf(shape, port) + shape.path;
      const output = await runTool([...command, ...options, ...data, `--log-file=${log}`, ...header, url], durationS);
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
