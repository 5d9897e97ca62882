import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type CaseRequest, createHttp1Exchange, NoResponse } from "../../../../conformance/runner/index.ts";
import { Dice } from "../../../../testing/src/dice.ts";
import { testSeed } from "../../../../testing/src/test-seed.ts";
import { type Explanation, explanations } from "./explanations.ts";
import { makeRequest } from "./requests.ts";
import { type ResponseView, viewOf } from "./response-view.ts";
import { build, type Pair, type Peer, peers, startPair } from "./servers.ts";

// `npm run suite -- differential` sends generated requests to Envoy and to grpc-gateway, and to the proxy with the
// profile that replaces each, all in front of the same grpc-go. Compares the responses' status, content type, message
// and code. explanations.ts must explain each difference. Use `-- --requests 5000 --seed 42` for other requests. `--
// --show` also prints the explained differences.

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "1000" },
    seed: { type: "string", default: String(testSeed) },
    show: { type: "boolean", default: false },
  },
});

/** A request's timeout on a busy machine, in ms. */
const timeoutMs = 15_000;

const folders = await build();
const used = new Map<Explanation, number>();
let passed = 0;
const unexplained: string[] = [];
for (const peer of peers) {
  await using pair = await startPair(peer, folders);
  await untilServed(pair);
  await compare(peer, pair);
}
for (const [{ why, peer }, count] of used) process.stdout.write(`${peer}, ${count} requests: ${why}\n`);
for (const text of unexplained) process.stderr.write(`${text}\n`);
process.stdout.write(`${passed} requests without an unexplained difference, ${unexplained.length} with one\n`);
const report = process.env["TEST_REPORT"];
if (report !== undefined)
  writeFileSync(report, JSON.stringify({ numPassedTests: passed, numFailedTests: unexplained.length }));
process.exitCode = unexplained.length === 0 ? 0 : 1;

async function compare(peer: Peer, { peer: peerUrl, proxy: proxyUrl }: Pair): Promise<void> {
  const dice = new Dice(Number(values.seed));
  const seen = new Set<string>();
  while (seen.size < Number(values.requests)) {
    const request = makeRequest(dice);
    const key = JSON.stringify(request);
    if (seen.has(key)) continue;
    seen.add(key);
    const [proxy, other] = await Promise.all([send(proxyUrl, request), send(peerUrl, request)]);
    if (JSON.stringify(proxy) === JSON.stringify(other)) {
      passed++;
      continue;
    }
    const known = explanations.find((each) => each.peer === peer && each.covers({ request, proxy, peer: other }));
    const text = `${key}\n  proxy: ${JSON.stringify(proxy)}\n  ${peer}: ${JSON.stringify(other)}`;
    if (known === undefined) unexplained.push(text);
    else {
      passed++;
      used.set(known, (used.get(known) ?? 0) + 1);
      if (values.show) process.stdout.write(`${known.why}\n  ${text}\n`);
    }
  }
}

async function send(url: URL, request: CaseRequest): Promise<ResponseView> {
  return viewOf(
    await createHttp1Exchange(url)(request, timeoutMs).catch((error: unknown) => {
      if (error instanceof NoResponse) return error;
      throw error;
    }),
  );
}

async function untilServed({ peer }: Pair): Promise<void> {
  for (let attempts = 0; attempts < 300; attempts++) {
    const { status } = await send(peer, { method: "GET", target: "/v1/query" });
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${peer.href} did not respond within 30 s`);
}
