import { expect } from "vitest";
import { type Case, type Exchange, type Result, run } from "../../../conformance/runner/index.ts";
import { waitLimitMs } from "../deadline.ts";
import { isPeerAtLeast } from "../peer-version.ts";

// Cases in which this gateway uses an alternative that the standard allows. The gateway rejects duplicates, accepts
// streams only with its own content types, and accepts enum numbers in URLs.
// oxfmt-ignore
const byAlternative = new Set([
  "body.star.path.null", "body.twice", "body.twice.names", "body.twice.map", "stream.collect.json-lines",
  "stream.collect.array", "stream.collect.one", "stream.relay.json-lines", "path.enum.number",
  "path.enum.unknown-number", "path.enum.negative-number", "query.enum.number", "query.enum.unknown-number",
  "query.enum.negative-number",
]);

// Older versions of protobuf-es drop the map key `__proto__`.
const failingHere: readonly string[] = isPeerAtLeast("@bufbuild/protobuf", "2.16") ? [] : ["body.map.proto-key"];

/** Returns the cases that fail, or pass by an alternative that this gateway does not use. By default in process. */
export async function failures(
  some: readonly Case[],
  exchange: Exchange,
  knownFailing: readonly string[] = failingHere,
): Promise<readonly string[]> {
  const results: Result[] = [];
  const options = { exchange, timeoutMs: waitLimitMs, without: [], knownFailing };
  for await (const result of run(some, options)) results.push(result);
  expect(results).toHaveLength(some.length);
  return results.flatMap(({ case: { id }, outcome, problems }) => {
    const isKept = outcome === "pass" || outcome === "known" || (outcome === "alternative" && byAlternative.has(id));
    return isKept ? [] : [`${id}: ${outcome} ${problems.join("; ")}`];
  });
}
