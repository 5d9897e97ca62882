/**
 * Measures how the cost of REST routing grows with the rule count. The rules are compiled at the start. Each request
 * finds the rule for a path and extracts the path's variables. Requests match all rules, or the same ten rules.
 *
 * The program runs in one process without sockets, whose cost would hide the cost of routing. Run the program alone, as
 * `npx node protoport/bench/routes.ts`.
 */
import { compileRestRoutes, type RestRoutes } from "../gateway/src/protocols/rest/rules/index.ts";
import { Health } from "../gateway/src/health/index.ts";
import { median } from "./summary.ts";

const ruleCounts = [10, 1000, 10_000] as const;
/** Number of rules in the smallest table. Every table has these rules. */
const sameRules = ruleCounts[0];
const rounds = 5;
const requestsPerRound = 500_000;
// Maximum number of different paths. With this many paths, the processor's caches do not hold all results.
const maxPaths = 4096;

/** A rule with only a method and a path. */
interface Pattern {
  readonly pattern: { readonly case: "custom"; readonly value: { readonly kind: string; readonly path: string } };
}

/** A rule, and a request that matches it. */
interface Case {
  readonly rule: Pattern;
  readonly httpMethod: string;
  readonly path: (id: number) => string;
}

// A resource's five typical rules.
function resourceCases(resource: string): readonly Case[] {
  const parent = `/v1/{service=projects/*/${resource}}`;
  const one = `/v1/${resource}/{service}`;
  return [
    { rule: ruleOf("GET", one), httpMethod: "GET", path: (id) => `/v1/${resource}/${id}` },
    { rule: ruleOf("DELETE", one), httpMethod: "DELETE", path: (id) => `/v1/${resource}/${id}` },
    { rule: ruleOf("GET", parent), httpMethod: "GET", path: (id) => `/v1/projects/${id}/${resource}` },
    { rule: ruleOf("POST", `${one}:move`), httpMethod: "POST", path: (id) => `/v1/${resource}/${id}:move` },
    {
      rule: ruleOf("GET", `/v1/files/${resource}/{service=**}`),
      httpMethod: "GET",
      path: (id) => `/v1/files/${resource}/a/b/${id}`,
    },
  ];
}

function ruleOf(kind: string, path: string): Pattern {
  return { pattern: { case: "custom", value: { kind, path } } };
}

function casesOf(count: number): readonly Case[] {
  const resources = Array.from({ length: Math.ceil(count / 5) }, (_, at) => `resource${at}s`);
  return resources.flatMap(resourceCases).slice(0, count);
}

function compile(cases: readonly Case[]): RestRoutes {
  const additionalBindings = cases.map((each) => each.rule);
  const rule = { ...ruleOf("GET", "/"), selector: "grpc.health.v1.Health.Check", additionalBindings };
  return compileRestRoutes([Health.method.check], { rules: [rule] });
}

interface Request {
  readonly httpMethod: string;
  readonly path: string;
}

function requestsOf(cases: readonly Case[]): readonly Request[] {
  return Array.from({ length: maxPaths }, (_, at) => {
    // The stride is coprime with the rule counts, so that all rules are used in a mixed order.
    const each = cases[(at * 7919) % cases.length];
    if (each === undefined) throw new Error("no rules");
    return { httpMethod: each.httpMethod, path: flat(each.path(1000 + at)) };
  });
}

// Returns a flat string, like a string that is read from a socket, instead of a rope with concatenated parts.
function flat(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

function matchNs(routes: RestRoutes, requests: readonly Request[]): number {
  const start = process.hrtime.bigint();
  let found = 0;
  for (let at = 0; at < requestsPerRound; at++) {
    const request = requests[at % maxPaths];
    if (request !== undefined && routes.match(request.httpMethod, request.path).kind === "binding") found++;
  }
  if (found !== requestsPerRound) throw new Error(`only ${found} of ${requestsPerRound} requests were matched`);
  return Number(process.hrtime.bigint() - start) / requestsPerRound;
}

function compileMs(cases: readonly Case[]): number {
  const start = process.hrtime.bigint();
  compile(cases);
  return Number(process.hrtime.bigint() - start) / 1e6;
}

const subjects = ruleCounts.map((count) => {
  const cases = casesOf(count);
  const same = requestsOf(cases.slice(0, sameRules));
  return { count, cases, routes: compile(cases), requests: requestsOf(cases), same };
});
// Rounds alternate between the rule counts, so that a disturbance affects all rule counts.
const timings = Array.from({ length: rounds + 1 }, () =>
  subjects.map(({ cases, routes, requests, same }) => ({
    match: matchNs(routes, requests),
    same: matchNs(routes, same),
    compile: compileMs(cases),
  })),
).slice(1);
const rows = subjects.map(({ count }, at) => {
  const own = timings.flatMap((round) => round[at] ?? []);
  const match = median(own.map((timing) => timing.match));
  const same = median(own.map((timing) => timing.same));
  return { rules: count, match, same, compile: (median(own.map((timing) => timing.compile)) / count) * 1000 };
});
// Requests for all rules also miss the processor's caches. Requests for ten rules show the table's cost.
console.log("rules   match of all (ns)   of the same ten (ns)   against 10 rules   compile (ms per 1,000)");
for (const { rules, match, same, compile: compiling } of rows) {
  const ratio = same / (rows[0]?.same ?? Number.NaN);
  const cells = [match.toFixed(0).padStart(17), same.toFixed(0).padStart(23), `${ratio.toFixed(2)}x`.padStart(19)];
  console.log(`${String(rules).padEnd(8)}${cells.join("")}${compiling.toFixed(1).padStart(25)}`);
}
