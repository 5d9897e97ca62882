#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Exchange } from "./response.ts";
import { type Case, type Need, needs, readCases } from "./case.ts";
import { createHttp1Exchange } from "./http1.ts";
import { createHttp2Exchange } from "./http2.ts";
import { hasFailed, type ReportForm, reportForms, countOutcomes, writeReport, writeSummary } from "./report.ts";
import { createPattern, readKnownFailing, type Result, run } from "./run.ts";

const help = `transcoding-conformance --base http://127.0.0.1:8080 [options]

Sends cases of google.api.http to a server of the echo contract and compares the calls of its backend.

  --base URL             the server: http or https, a port, and a path prefix; set NODE_EXTRA_CA_CERTS=FILE
                         to trust your own certificate authority
  --http2                uses HTTP/2, with prior knowledge if the base is http
  --only PATTERN         runs only the cases with this id, in which * matches any text; may be repeated
  --without NEED         skips the cases that need ${needs.join(", ")};
                         may be repeated
  --known-failing FILE   ids of cases that are known to fail, one a line; the run fails if one of them passes
  --report FORM          ${reportForms.join(", ")}; default: text
  --timeout MS           timeout of each case; default: 5000
  --strict               the run also fails if a \`should\` case fails
  --list                 prints the cases without running them

Exit code: 0 if all \`must\` cases passed or are known to fail, 1 if another one failed, 2 if the run cannot start.
`;

/** The error for an invalid command line. */
class UsageError extends Error {}

/**
 * Default timeout for a case, in ms. The timeout is long enough for a busy machine, and short enough for a run with a
 * thousand cases.
 */
const defaultTimeoutMs = "5000";

/** Maximum interval between progress messages, in ms. If the server hangs, a run takes hours. */
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
  const exchange = values.http2 ? createHttp2Exchange(base) : createHttp1Exchange(base);
  const timeoutMs = parseTimeout(values.timeout);
  await expectEcho(base, exchange, timeoutMs);
  const results: Result[] = [];
  let reportedAt = performance.now();
  for await (const result of run(cases, { exchange, timeoutMs, without, knownFailing })) {
    results.push(result);
    if (results.length % 100 !== 0 && performance.now() - reportedAt < progressMs) continue;
    reportedAt = performance.now();
    process.stderr.write(`${results.length} of ${cases.length}, ${countOutcomes(results).fail} failed\n`);
  }
  process.stdout.write(writeReport(results, form));
  if (form !== "text") process.stderr.write(`${writeSummary(results)}\n`);
  return hasFailed(results, values.strict) ? 1 : 0;
}

/** Throws an error if the server does not serve the echo contract, because all cases would then be meaningless. */
async function expectEcho(base: URL, exchange: Exchange, timeoutMs: number): Promise<void> {
  const simplest = choose(readCases(), ["query.none"]);
  for await (const { problems } of run(simplest, { exchange, timeoutMs, without: [], knownFailing: [] })) {
    if (problems.length > 0) {
      throw new UsageError(`${base.href} does not serve the echo contract: GET /v1/query: ${problems.join(", ")}`);
    }
  }
}

/** Returns the cases that match any pattern, or all cases if there is no pattern. */
function choose(cases: readonly Case[], patterns: readonly string[]): readonly Case[] {
  const unused = patterns.filter((pattern) => !cases.some(({ id }) => createPattern([pattern])(id)));
  if (unused.length > 0)
    throw new UsageError(`--only: no case matches ${unused.map((each) => `"${each}"`).join(" or ")}`);
  const isSelected = createPattern(patterns.length === 0 ? ["*"] : patterns);
  return cases.filter(({ id }) => isSelected(id));
}

function parseBase(text: string | undefined): URL {
  const base = text === undefined ? null : URL.parse(text);
  if (base === null || !/^https?:$/.test(base.protocol) || base.search !== "" || base.hash !== "") {
    throw new UsageError(`--base must be the URL of the server, such as http://127.0.0.1:8080, got "${text ?? ""}"`);
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
  if (need === undefined) throw new UsageError(`--without must be one of ${needs.join(", ")}, got "${text}"`);
  return need;
}

function parseForm(text: string): ReportForm {
  const form = reportForms.find((each) => each === text);
  if (form === undefined) throw new UsageError(`--report must be one of ${reportForms.join(", ")}, got "${text}"`);
  return form;
}

function parseTimeout(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text))
    throw new UsageError(`--timeout must be between 1 and 9999999 milliseconds, got "${text}"`);
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
