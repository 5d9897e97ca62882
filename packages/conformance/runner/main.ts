#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Exchange } from "./answer.ts";
import { type Case, type Need, needs, readCases } from "./case.ts";
import { createHttp1 } from "./http1.ts";
import { createHttp2 } from "./http2.ts";
import { hasFailed, type ReportForm, reportForms, tally, writeReport, writeSummary } from "./report.ts";
import { createPattern, readKnownFailing, type Result, run } from "./run.ts";

const help = `transcoding-conformance --base http://127.0.0.1:8080 [options]

Sends cases of google.api.http to a server of the echo contract and compares what its backend was asked.

  --base URL             the server: http or https, a port, a path before all others; a certificate of an
                         authority of your own is trusted by NODE_EXTRA_CA_CERTS=FILE
  --http2                over HTTP/2, with prior knowledge if the base is http
  --only PATTERN         only the cases with this id, in which * stands for any text; may be repeated
  --without NEED         without the cases that need ${needs.join(", ")};
                         may be repeated
  --known-failing FILE   ids that are known to fail, one in a line; one that passes fails the run
  --report FORM          ${reportForms.join(", ")}; text by default
  --timeout MS           for the answer of one case; 5000 by default
  --strict               a \`should\` that fails fails the run, too
  --list                 prints the cases, and runs none

Ends with 0 if no \`must\` fails that is not known, with 1 if one does, and with 2 if it cannot begin.
`;

/** Begins nothing, and says why. */
class UsageError extends Error {}

/** A case ends by then, in ms: long for a busy machine, short for a thousand cases. */
const defaultTimeoutMs = "5000";

/** Progress is told at least as often as this, in ms: a server that hangs takes hours. */
const progressMs = 10_000;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      base: { type: "string" },
      http2: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: [] },
      without: { type: "string", multiple: true, default: [] },
      "known-failing": { type: "string" },
      report: { type: "string", default: "text" },
      timeout: { type: "string", default: defaultTimeoutMs },
      strict: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const cases = choose(readCases(), values.only);
  if (values.list) {
    process.stdout.write(cases.map(({ id, level, title }) => `${id} (${level}): ${title}\n`).join(""));
    return 0;
  }
  const base = parseBase(values.base);
  const knownFailing = values["known-failing"] === undefined ? [] : readKnownFailing(readList(values["known-failing"]));
  const without = values.without.map(parseNeed);
  const form = parseForm(values.report);
  const exchange = values.http2 ? createHttp2(base) : createHttp1(base);
  const timeoutMs = parseTimeout(values.timeout);
  await expectEcho(base, exchange, timeoutMs);
  const results: Result[] = [];
  let toldAt = performance.now();
  for await (const result of run(cases, { exchange, timeoutMs, without, knownFailing })) {
    results.push(result);
    if (results.length % 100 !== 0 && performance.now() - toldAt < progressMs) continue;
    toldAt = performance.now();
    process.stderr.write(`${results.length} of ${cases.length}, ${tally(results).fail} failed\n`);
  }
  process.stdout.write(writeReport(results, form));
  if (form !== "text") process.stderr.write(`${writeSummary(results)}\n`);
  return hasFailed(results, values.strict) ? 1 : 0;
}

/** Throws an error if the server does not serve the contract: no case would fail by what it is about. */
async function expectEcho(base: URL, exchange: Exchange, timeoutMs: number): Promise<void> {
  const simplest = choose(readCases(), ["query.none"]);
  for await (const { problems } of run(simplest, { exchange, timeoutMs, without: [], knownFailing: [] })) {
    if (problems.length > 0) {
      throw new UsageError(`${base.href} does not serve the echo contract: GET /v1/query: ${problems.join(", ")}`);
    }
  }
}

/** Returns the cases that one of the patterns names, or all if there is none. */
function choose(cases: readonly Case[], patterns: readonly string[]): readonly Case[] {
  const unused = patterns.filter((pattern) => !cases.some(({ id }) => createPattern([pattern])(id)));
  if (unused.length > 0) throw new UsageError(`no case is called ${unused.join(" or ")}`);
  const isWanted = createPattern(patterns.length === 0 ? ["*"] : patterns);
  return cases.filter(({ id }) => isWanted(id));
}

function parseBase(text: string | undefined): URL {
  const base = text === undefined ? null : URL.parse(text);
  if (base === null || !/^https?:$/.test(base.protocol) || base.search !== "" || base.hash !== "") {
    throw new UsageError("--base takes the URL of the server, such as http://127.0.0.1:8080");
  }
  return base;
}

function readList(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`--known-failing: cannot read ${file}`, { cause: error });
  }
}

function parseNeed(text: string): Need {
  const need = needs.find((each) => each === text);
  if (need === undefined) throw new UsageError(`--without takes one of ${needs.join(", ")}`);
  return need;
}

function parseForm(text: string): ReportForm {
  const form = reportForms.find((each) => each === text);
  if (form === undefined) throw new UsageError(`--report takes one of ${reportForms.join(", ")}`);
  return form;
}

function parseTimeout(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new UsageError("--timeout takes milliseconds");
  return Number(text);
}

function isUsageError(error: unknown): error is Error {
  return error instanceof UsageError || (error instanceof TypeError && "code" in error);
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!isUsageError(error)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
