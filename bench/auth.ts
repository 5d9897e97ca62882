import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  createBearerAuth,
  openTokenVerifier,
  toStaticToken,
  type CredentialRequest,
  type BearerAuth,
} from "@protoport/auth";
import { createContextValues } from "@connectrpc/connect";
import { benchAudience, benchIssuer, createBenchIssuer, type BenchIssuer } from "./auth-tokens.ts";
import { h2loadLoad } from "../protoport/bench/load/h2load.ts";
import type { LoadShape } from "../protoport/bench/load/load.ts";
import { ownLoad } from "../protoport/bench/load/own-load.ts";
import { hasTool } from "../protoport/bench/load/tool.ts";
import { wrkLoad } from "../protoport/bench/load/wrk.ts";
import { numberFlags } from "../protoport/bench/options.ts";
import { grpcProbe, http1Probe } from "../protoport/bench/probe.ts";
import type { Subject } from "../protoport/bench/scenarios.ts";
import { benchToken } from "./servers/plants.ts";
import { formatTable } from "../protoport/bench/table.ts";
import { compareByTurns, type Contender } from "../protoport/bench/turns.ts";

// `npx node bench/auth.ts [--rounds 3] [--turns 4]` measures a credential's cost, in `admit` and in a whole server.

const length = numberFlags({ rounds: 3, turns: 4 });

const procedure = "/plantstore.v1.PlantService/DeletePlant";
const silent = { info: () => {}, warn: () => {} };
const folder = mkdtempSync(join(tmpdir(), "plantstore-bench-"));
try {
  const issuers = new Map(
    await Promise.all(
      ["RS256", "PS256", "ES256", "EdDSA"].map(async (name) => [name, await createBenchIssuer(folder, name)] as const),
    ),
  );
  await admitAlone(issuers);
  const rs256 = issuers.get("RS256");
  if (rs256 !== undefined) await wholeServer(rs256);
} finally {
  rmSync(folder, { recursive: true });
}

async function admitAlone(issuers: ReadonlyMap<string, BenchIssuer>): Promise<void> {
  console.log("\n`admit` alone, µs a request\n| credential | µs |\n| --- | --- |");
  const tokens = [toStaticToken("bench", benchToken)];
  for (const [name, issuer] of issuers) {
    const jwt = [{ issuer: benchIssuer, audiences: [benchAudience], keysFile: issuer.keysFile, enforceScopes: true }];
    const opened = await openTokenVerifier({ tokens, jwt }, silent);
    if (opened.kind !== "value") throw new Error(opened.problems.join("; "));
    const { admit } = createBearerAuth(opened.value, { realm: "plantstore", requiredScope: () => "plants:delete" });
    if (name === "RS256") reportShared(admit);
    const token = await issuer.sign();
    await admit(requestWith(token)());
    row(`JWT of ${token.length} characters, ${name}: hit`, timeSync(admit, requestWith(token)));
    row("the same, repeated on a connection", timeSync(admit, requestWith(token, {})));
    row(
      `JWT, ${name}: first time`,
      await timeNew(admit, await Promise.all(Array.from({ length: 2_000 }, () => issuer.sign()))),
    );
    opened.value.close?.();
  }
}

function reportShared(admit: BearerAuth["admit"]): void {
  row("static token", timeSync(admit, requestWith(benchToken)));
  row("the same, repeated on a connection", timeSync(admit, requestWith(benchToken, {})));
  row("refused: unknown token", timeSync(admit, requestWith("x".repeat(43)), 50_000));
  row("refused: malformed", timeSync(admit, requestWith("x y"), 50_000));
}

function row(name: string, us: number): void {
  console.log(`| ${name} | ${us.toFixed(2)} |`);
}

/** Creates requests like the gateway does. Each request has a new string for the header. */
function requestWith(token: string, connection: object = {}): () => CredentialRequest {
  const bytes = Buffer.from(`Bearer ${token}`);
  return () => {
    const authorization = bytes.toString("latin1");
    return { procedure, authorization, contextValues: createContextValues(), connection };
  };
}

/** Returns the time in µs for a warm `admit` that returns no promise. */
function timeSync(admit: BearerAuth["admit"], request: () => CredentialRequest, calls = 300_000): number {
  const run = (count: number): void => {
    for (let call = 0; call < count; call += 1) admitOrRefuse(admit, request());
  };
  run(calls / 3);
  const startMs = performance.now();
  run(calls);
  return ((performance.now() - startMs) * 1_000) / calls;
}

function admitOrRefuse(admit: BearerAuth["admit"], request: CredentialRequest): void {
  try {
    const admitted = admit(request);
    if (admitted !== undefined) throw new Error("admit returned a promise");
  } catch (refusal) {
    if (refusal instanceof Error && refusal.message === "admit returned a promise") throw refusal;
  }
}

/** Returns the time in µs for an `admit` with a new token. The calls run one after the other. */
async function timeNew(admit: BearerAuth["admit"], tokens: readonly string[]): Promise<number> {
  const requests = tokens.map((token) => requestWith(token)());
  const startMs = performance.now();
  for (const request of requests) await admit(request);
  return ((performance.now() - startMs) * 1_000) / requests.length;
}

async function wholeServer(issuer: BenchIssuer): Promise<void> {
  const jwt = await issuer.sign();
  // A static token with the same length shows a long header's cost without verification.
  const longToken = "x".repeat(jwt.length);
  const environment = { BENCH_KEYS_FILE: issuer.keysFile, BENCH_LONG_TOKEN: longToken };
  const program = fileURLToPath(new URL("servers/plantstore-jwt.ts", import.meta.url));
  const credentials: readonly Credential[] = [
    { name: "static token", token: benchToken },
    { name: `static token of ${longToken.length} characters`, token: longToken },
    { name: `JWT of ${jwt.length} characters`, token: jwt },
  ].map(({ name, token }) => ({ subject: { name, program, environment }, token }));
  const http1 = hasTool("wrk") ? wrkLoad : ownLoad;
  const http2 = hasTool("h2load") ? h2loadLoad : ownLoad;
  const contenders = (toLoad: (token: string) => Pick<Contender, "load" | "probe">): readonly Contender[] =>
    credentials.map(({ subject, token }) => ({ subject, ...toLoad(token) }));
  const rest = contenders((token) => ({ load: http1(restShape(token)), probe: http1Probe(restShape(token)) }));
  console.log(`\nDELETE /plants/7 over HTTP/1.1\n\n${formatTable(await compareByTurns(rest, length))}`);
  const grpc = contenders((token) => ({ load: http2(grpcShape(token)), probe: grpcProbe(grpcShape(token)) }));
  console.log(`\nDeletePlant as gRPC over h2c\n\n${formatTable(await compareByTurns(grpc, length))}`);
}

interface Credential {
  readonly subject: Subject;
  readonly token: string;
}

function restShape(token: string): LoadShape {
  const header = { authorization: `Bearer ${token}` };
  return { httpMethod: "DELETE", path: "/plants/7", header, body: undefined, connections: 64, streams: 1 };
}

function grpcShape(token: string): LoadShape {
  const header = { authorization: `Bearer ${token}`, "content-type": "application/grpc+proto", te: "trailers" };
  // An envelope with DeletePlantRequest{id: 7}.
  const body = Buffer.from([0, 0, 0, 0, 2, 8, 7]);
  return { httpMethod: "POST", path: procedure, header, body, connections: 8, streams: 32 };
}
