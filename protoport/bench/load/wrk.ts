import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Load, type LoadResult, type LoadShape, originOf, requestOf } from "./load.ts";
import { numberIn, runTool, secondsIn, withFolder } from "./tool.ts";

// Maximum share of responses with status 400 and above, which wrk counts. Every thousandth response has such a status
// by design, and more than twice as many fail the load.
const maxMissesPerRequest = 1 / 500;

/** Returns a wrk load with one thread. @param run - runs wrk, by default on the load's core */
export function wrkLoad(shape: LoadShape, run: typeof runTool = runTool): Load {
  return (port, durationS) =>
    withFolder(async (folder) => {
      const script = join(folder, "load.lua");
      writeFileSync(script, luaOf(shape));
      const command = [
        "wrk",
        `-c${String(shape.connections)}`,
        "-t1",
        "--timeout",
        "30s",
        `-d${String(durationS)}s`,
        "--latency",
        "-s",
        script,
      ] as const;
      return toResult(await run([...command, originOf(shape, port)], durationS));
    });
}

function luaOf(shape: LoadShape): string {
  const header = Object.entries(shape.header).map(
    ([name, value]) => `wrk.headers[${luaString(name)}] = ${luaString(value)}`,
  );
  const body = shape.body === undefined ? [] : [`wrk.body = ${luaString(shape.body.toString("latin1"))}`];
  const lines = [`wrk.method = "${shape.httpMethod}"`, `wrk.path = "${shape.path}"`, ...header, ...body];
  return [...lines, ...variantsOf(shape)].join("\n");
}

/** Returns the variants' complete requests, which wrk sends in turn. A Lua table does not keep its fields' order. */
function variantsOf(shape: LoadShape): string[] {
  const { variants = [] } = shape;
  if (variants.length === 0) return [];
  const requests = variants.map((variant) => luaString(requestOf(shape, variant)));
  return [
    `local requests = { ${requests.join(", ")} }`,
    "local sent = 0",
    "function request() sent = sent % #requests + 1; return requests[sent] end",
  ];
}

// Returns a Lua string, in which a byte that is not printable ASCII is a backslash and three digits.
function luaString(octets: string): string {
  const escaped = octets.replaceAll(/[^ !#-[\]-~]/g, (octet) => `\\${String(octet.charCodeAt(0)).padStart(3, "0")}`);
  return `"${escaped}"`;
}

function toResult(output: string): LoadResult {
  const { broken, refused, ...result } = readWrk(output);
  return { ...result, failures: broken + (refused > result.requests * maxMissesPerRequest ? refused : 0) };
}

/** wrk's result, with the numbers of refused requests and broken connections. */
interface WrkResult extends Omit<LoadResult, "failures"> {
  readonly refused: number;
  readonly broken: number;
}

/** Parses the wrk output. */
export function readWrk(output: string): WrkResult {
  const broken = [...(/Socket errors: (.*)/.exec(output)?.[1] ?? "").matchAll(/\d+/g)];
  return {
    requests: numberIn(output, /(\d+) requests in/),
    refused: Number(/Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1] ?? 0),
    broken: broken.reduce((sum, [count]) => sum + Number(count), 0),
    durationS: secondsIn(output, /requests in ([\d.]+)(us|ms|s|m)/),
    latencyUs: {
      p50: secondsIn(output, /50%\s+([\d.]+)(us|ms|s|m)/) * 1e6,
      p99: secondsIn(output, /99%\s+([\d.]+)(us|ms|s|m)/) * 1e6,
    },
  };
}
