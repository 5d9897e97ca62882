import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { PlantMetrics } from "../../src/server/plant-metrics.ts";
import { plantProtected } from "../../src/service/index.ts";
import type { StartedServer } from "../../src/server/index.ts";
// oxfmt-ignore
import { type Address, createCertificate, createSigningKey, createTempFolder, exchange, exchangeHttp1, fieldValue, type Frame,
  frameType, headersFrame, type HttpRequest, type HttpVersion, openFrames, resetFrame, rpcRequest,
  startIdentityProvider, type TempFolder, testAudience, wireFormats, within } from "@protoport/testing";
import { deletePlantProcedure, deletePlantRequest } from "../support/plants/delete-plant.ts";
import { begun, postHeader } from "../../protoport/testing/src/http2/http2-requests.ts";
import { familyNames, readSamples, type Sample } from "../../protoport/testing/src/telemetry/samples.ts";
import { bearer, type ConfiguredServer, startConfigured } from "../support/server/index.ts";

const token = "token-of-the-metrics-test";

const start = (environment: Readonly<Record<string, string>>): Promise<ConfiguredServer> =>
  startConfigured({ LOG_LEVEL: "silent", PLANTSTORE_TOKENS: token, ...environment });

function adminOf({ admin }: StartedServer): Address {
  if (admin === undefined) throw new Error("there is no admin address");
  return admin;
}

async function scrape(server: StartedServer): Promise<string> {
  const { body } = await exchangeHttp1(adminOf(server), { httpMethod: "GET", path: "/metrics", header: [] });
  return String(body);
}

let folder: TempFolder;
let server: StartedServer;
beforeAll(async () => {
  folder = createTempFolder();
  server = await start({ DATABASE_URL: `sqlite:${folder.file("plants.db")}`, PLANTSTORE_ADMIN_ADDRESS: "0" });
});
afterAll(async () => {
  await server.drain();
  folder[Symbol.dispose]();
});

/** Returns how a request changes one metric's samples. */
const added = async (name: string, version: HttpVersion, request: HttpRequest): Promise<Sample[]> =>
  await addedBy(name, () => exchange(server, version, request));

async function addedBy(name: string, act: () => Promise<unknown>): Promise<Sample[]> {
  const before = readSamples(await scrape(server));
  await act();
  const after = readSamples(await scrape(server)).filter((sample) => sample.name === name);
  return after.flatMap((sample) => {
    const known = before.find(
      (each) => each.name === name && JSON.stringify(each.labels) === JSON.stringify(sample.labels),
    );
    const value = sample.value - (known?.value ?? 0);
    return value === 0 ? [] : [{ ...sample, value }];
  });
}

const good = [bearer(token)];
/** Returns the HEADERS frame for a call whose message has not been sent. */
function openCall(streamId: number): Frame {
  const { path, header } = deletePlantRequest(wireFormats.grpc, 1n, good);
  return headersFrame(streamId, [...postHeader().filter(([name]) => name !== ":path"), [":path", path], ...header]);
}

const probe: HttpRequest = { httpMethod: "GET", path: "/livez", header: [] };
const rpc = "rpc_server_call_duration_seconds_count";
const http = "http_server_request_duration_seconds_count";
const method = "plantstore.v1.PlantService/DeletePlant";

describe("metrics", () => {
  test.each<[name: string, version: HttpVersion, request: HttpRequest, labels: object]>(
    // oxfmt-ignore
    [
      ["a successful gRPC call", "2", deletePlantRequest(wireFormats.grpc, 1n, good),
        { rpc_system_name: "grpc", rpc_method: method, rpc_response_status_code: "OK" }],
      ["a gRPC-Web call for an unknown plant", "1.1", deletePlantRequest(wireFormats["grpc-web"], 1000n, good),
        { rpc_system_name: "grpc", rpc_method: method, rpc_response_status_code: "NOT_FOUND" }],
      ["a successful Connect call", "1.1", deletePlantRequest(wireFormats["connect-json"], 2n, good),
        { rpc_system_name: "connectrpc", rpc_method: method }],
      ["a Connect call without a credential", "2", deletePlantRequest(wireFormats["connect-proto"], 3n, []),
        { rpc_system_name: "connectrpc", rpc_method: method, rpc_response_status_code: "unauthenticated" }],
      ["a gRPC call to an unknown method", "2",
        rpcRequest(wireFormats.grpc, new Uint8Array(0), good, "/plantstore.v1.PlantService/Water9"),
        { rpc_system_name: "grpc", rpc_method: "_OTHER", rpc_response_status_code: "UNIMPLEMENTED",
          error_type: "UNIMPLEMENTED" }],
    ],
  )("count %s with its labels", async (_name, version, request, labels) => {
    expect(await added(rpc, version, request)).toEqual([{ name: rpc, labels, value: 1 }]);
  });

  const plants = { http_route: "/plants/{id}", http_request_method: "DELETE" };
  test.each<[name: string, version: HttpVersion, request: HttpRequest, status: string, labels: object]>(
    // oxfmt-ignore
    [
      ["a successful REST request", "1.1", deletePlantRequest(wireFormats.rest, 4n, good), "204", plants],
      ["a REST request over HTTP/2", "2", deletePlantRequest(wireFormats.rest, 1000n, good), "400", plants],
      ["a liveness probe", "1.1", { httpMethod: "GET", path: "/livez?token=1", header: [] }, "200",
        { http_route: "/livez", http_request_method: "GET" }],
      ["a readiness probe", "1.1", { httpMethod: "GET", path: "/readyz", header: [] }, "200",
        { http_route: "/readyz", http_request_method: "GET" }],
      ["a request with an unknown method and path", "2", { httpMethod: "WATER", path: "/secret/42", header: good },
        "501", { http_request_method: "_OTHER" }],
    ],
  )("count %s with its status", async (_, version, request, status, labels) => {
    const response = { http_response_status_code: status, network_protocol_version: version, url_scheme: "http" };
    expect(await added(http, version, request)).toEqual([{ name: http, labels: { ...labels, ...response }, value: 1 }]);
  });

  test.each<{ kind: string; request: HttpRequest }>([
    { kind: "missing", request: deletePlantRequest(wireFormats.rest, 5n, []) },
    { kind: "malformed", request: deletePlantRequest(wireFormats.rest, 5n, [["authorization", "Bearer a b"]]) },
    { kind: "invalid", request: deletePlantRequest(wireFormats.rest, 5n, [bearer(`${token}-no`)]) },
    { kind: "unmatched", request: { httpMethod: "GET", path: "/nothing", header: good } },
    {
      kind: "resource_exhausted",
      request: { ...rpcRequest(wireFormats["connect-proto"], Buffer.alloc(100_000), good, deletePlantProcedure) },
    },
  ])('count a refusal with kind="$kind" once', async ({ kind, request }) => {
    const name = "gateway_refusals_total";
    expect(await added(name, "1.1", request)).toEqual([{ name, labels: { kind }, value: 1 }]);
  });

  test("do not count an unknown plant as a refusal", async () => {
    const request = deletePlantRequest(wireFormats["connect-proto"], 5_000n, good);
    expect(await added("gateway_refusals_total", "1.1", request)).toEqual([]);
  });
});

test.each<[name: string, error: ConnectError, kinds: readonly string[]]>([
  ["metrics do not count a client's early disconnect as a refusal", new ConnectError("", Code.Canceled), []],
  ["metrics count a protected plant as a refusal", plantProtected(1n), ["plant_protected"]],
  ["metrics do not count every failed precondition as a refusal", new ConnectError("", Code.FailedPrecondition), []],
])("%s", (_name, error, kinds) => {
  using metrics = new PlantMetrics("sqlite");
  // oxfmt-ignore
  metrics.onResponse({
    procedure: undefined, protocol: "rest", httpMethod: "GET", path: "/livez", httpRoute: "/livez", httpVersion: "2.0",
    scheme: "http", httpStatus: 0, error, durationMs: 1, contextValues: createContextValues(),
    peer: { address: "127.0.0.1", port: 1 } });
  const points = metrics.collect().find(({ name }) => name === "gateway.refusals")?.points;
  expect(points?.map(({ attributes }) => attributes["kind"])).toEqual(kinds);
});

test.each<[name: string, version: HttpVersion, request: HttpRequest, status: string]>([
  ["a URL that is too long", "1.1", { ...probe, path: `/${"x".repeat(20_000)}` }, "414"],
  ["a URL that is too long over HTTP/2", "2", { ...probe, path: `/${"x".repeat(9_000)}` }, "414"],
  ["an invalid Host", "1.1", { ...probe, header: [["host", "a b"]] }, "400"],
  ["a header that is too large", "1.1", { ...probe, header: [["x", "y".repeat(20_000)]] }, "431"],
])("metrics count a request with %s as a bad request", async (_name, version, request, status) => {
  const name = "gateway_bad_requests_total";
  const labels = { http_response_status_code: status };
  expect(await added(name, version, request)).toEqual([{ name, labels, value: 1 }]);
});

test.each<{ name: string; frames: readonly Frame[]; want: readonly object[] }>(
  // oxfmt-ignore
  [
    { name: "a malformed request", frames: [begun(1, ["Upper", "case"])],
      want: [{ labels: { scope: "stream", code: "PROTOCOL_ERROR" }, value: 1 }] },
    { name: "rapid stream resets (CVE-2023-44487)",
      // One of two intervals has more than the limit of 400.
      frames: Array.from({ length: 801 }, (_, i) => [openCall(2 * i + 1), resetFrame(2 * i + 1, 8)]).flat(),
      want: [{ labels: { scope: "connection", code: "ENHANCE_YOUR_CALM" }, value: 1 }] },
  ],
)("metrics count $name as an HTTP/2 client error", async ({ frames, want }) => {
  const name = "gateway_http2_errors_total";
  const send = async (): Promise<void> => {
    using connection = await openFrames(server);
    connection.send(...frames);
    await connection.readUntil(({ type }) => type === frameType.resetStream || type === frameType.goAway);
  };
  expect(await addedBy(name, send)).toMatchObject(want);
});

test("metrics record a batch's size and duration", async () => {
  const request = deletePlantRequest(wireFormats.rest, 6n, good);
  const bounds = readSamples(await scrape(server)).filter(({ name }) => name === "plantstore_delete_batch_size_bucket");
  const doubling = Array.from({ length: 11 }, (_, power) => `${2 ** power}.0`);
  expect(bounds.map(({ labels }) => labels["le"])).toEqual([...doubling, "+Inf"]);
  expect(await added("plantstore_delete_batch_size_sum", "1.1", request)).toMatchObject([{ value: 1 }]);
  const labels = { db_system_name: "sqlite", db_operation_name: "DELETE", db_collection_name: "plants" };
  const name = "db_client_operation_duration_seconds_count";
  expect(await added(name, "1.1", request)).toEqual([{ name, labels, value: 1 }]);
});

test("metrics count failed batches separately", () => {
  using metrics = new PlantMetrics("sqlite");
  for (const error of [undefined, new Error("the disk is full"), undefined]) metrics.onBatch([])(error);
  const points = metrics.collect().find(({ name }) => name === "db.client.operation.duration")?.points ?? [];
  expect(
    points.map((point) => [point.attributes["error.type"], "counts" in point && point.counts.reduce((a, b) => a + b)]),
  ).toEqual([
    [undefined, 2],
    ["_OTHER", 1],
  ]);
});

test("metrics have the number of open connections and the readiness", async () => {
  const value = async (name: string, labels: object): Promise<number | undefined> =>
    readSamples(await scrape(server)).find(
      (each) => each.name === name && JSON.stringify(each.labels) === JSON.stringify(labels),
    )?.value;
  const http1 = { network_protocol_version: "1.1" };
  await expect.poll(() => value("gateway_connections", http1)).toBe(0);
  const socket = connectSocket(server.port, "127.0.0.1");
  socket.write("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
  await within(new Promise((resolve) => socket.once("data", resolve)), "the response");
  expect(await value("gateway_connections", http1)).toBe(1);
  socket.destroy();
  await expect.poll(() => value("gateway_connections", http1)).toBe(0);
  expect(await value("gateway_ready", {})).toBe(1);
});

test("labels never contain ids, paths, tokens or subjects that clients send", async () => {
  const marks = [bearer(token), bearer("mark-in-a-token-0123456789")];
  for (const header of marks) {
    await exchange(server, "1.1", { httpMethod: "DELETE", path: "/plants/987654321?q=mark-query", header: [header] });
    await exchange(server, "1.1", { httpMethod: "GET", path: "/mark-path", header: [header] });
    await exchange(server, "2", rpcRequest(wireFormats.grpc, new Uint8Array(0), [header], "/mark.Rpc/Mark"));
  }
  const text = await scrape(server);
  expect(text).not.toMatch(/mark|987654321/i);
  expect(text).not.toContain(token);
});

test("only the admin address serves /metrics, and it otherwise serves only /problems", async () => {
  const get = (path: string): HttpRequest => ({ httpMethod: "GET", path, header: good });
  expect(await exchange(server, "1.1", get("/metrics"))).toMatchObject({ httpStatus: 404 });
  expect(await exchange(adminOf(server), "1.1", get("/plants/1"))).toMatchObject({ httpStatus: 404 });
  const problems = await exchange(adminOf(server), "1.1", get("/problems"));
  expect([String(problems.body), fieldValue(problems.header, "cache-control")]).toEqual(["{}", "no-store"]);
  expect(adminOf(server).address).toBe("127.0.0.1");
});

test("twenty concurrent scrapes get complete responses", async () => {
  const texts = await Promise.all(Array.from({ length: 20 }, () => scrape(server)));
  const names = familyNames(texts[0] ?? "");
  for (const text of texts) expect(familyNames(text)).toEqual(names);
});

test("metrics have each issuer's key age in seconds, regardless of the system clock", async () => {
  using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  await using trusting = await start({
    DATABASE_URL: "memory:",
    PLANTSTORE_ADMIN_ADDRESS: "0",
    PLANTSTORE_JWT_ISSUERS: provider.issuer,
    PLANTSTORE_JWT_AUDIENCES: testAudience,
  });
  const ages = readSamples(await scrape(trusting)).filter(({ name }) => name === "plantstore_jwks_age_seconds");
  expect(ages.map(({ labels }) => labels)).toEqual([{ issuer: provider.issuer }]);
  expect(ages[0]?.value).toBeGreaterThanOrEqual(0);
  // A minute later, correcting the system clock by two days does not change the age.
  using clocks = new DisposableStack();
  clocks.use(vi.spyOn(Date, "now").mockReturnValue(Date.now() + 48 * 3_600_000));
  clocks.use(vi.spyOn(performance, "now").mockReturnValue(performance.now() + 60_000));
  const [later] = trusting.collectMetrics().find(({ name }) => name === "plantstore.jwks.age")?.points ?? [];
  expect(later && "value" in later && Math.floor(later.value / 60)).toBe(1);
});

test("metrics have the certificate's period, even after a renewal", async () => {
  using files = createTempFolder();
  const put = (notBefore: Date, notAfter: Date): void => {
    const { cert, key } = createCertificate("plants", notAfter, notBefore);
    writeFileSync(files.file("cert.pem"), cert);
    writeFileSync(files.file("key.pem"), key);
  };
  const period = [new Date("2098-01-01T00:00:00Z"), new Date("2099-01-01T00:00:00Z")] as const;
  put(...period);
  const secure = await start({
    DATABASE_URL: "memory:",
    PLANTSTORE_ADMIN_ADDRESS: "0",
    TLS_CERT_FILE: files.file("cert.pem"),
    TLS_KEY_FILE: files.file("key.pem"),
  });
  const periodOf = async (): Promise<readonly Date[]> => {
    const samples = readSamples(await scrape(secure));
    const names = ["before", "after"].map((end) => `plantstore_tls_certificate_not_${end}_seconds`);
    return names
      .flatMap((name) => samples.filter((sample) => sample.name === name))
      .map(({ value }) => new Date(value * 1_000));
  };
  expect(await periodOf()).toEqual(period);
  const renewed = [new Date("2020-01-01T00:00:00Z"), new Date("2097-01-01T00:00:00Z")] as const;
  put(...renewed);
  await secure.reload();
  expect(await periodOf()).toEqual(renewed);
  await secure.drain();
});

test("metrics have each watched file's last reload and last success", async () => {
  using files = createTempFolder();
  const { cert, key } = createCertificate("plants");
  const publicKey = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" });
  // oxfmt-ignore
  const texts = {
    cert, key, hashes: "", jwks: JSON.stringify({ keys: [{ ...publicKey, alg: "ES256" }] }), secret: "secret",
    authority: cert,
    url: `postgres://plants:secret@127.0.0.1:1/plants?sslrootcert=${files.file("authority")}&sslmode=verify-full`,
  };
  const put = (all: Readonly<Record<string, string>>): void => {
    for (const [name, text] of Object.entries(all)) writeFileSync(files.file(name), text);
  };
  put(texts);
  // oxfmt-ignore
  await using configured = await startConfigured({
    LOG_LEVEL: "silent", DATABASE_URL: undefined, DATABASE_URL_FILE: files.file("url"), PLANTSTORE_ADMIN_ADDRESS: "0",
    TLS_CERT_FILE: files.file("cert"), TLS_KEY_FILE: files.file("key"),
    PLANTSTORE_TOKEN_HASHES_FILE: files.file("hashes"), PLANTSTORE_JWT_ISSUERS: "https://issuer.example",
    PLANTSTORE_JWT_AUDIENCES: testAudience, PLANTSTORE_JWT_KEYS_FILE: files.file("jwks"),
    PLANTSTORE_INTROSPECTION_URL: "https://issuer.example/introspect", PLANTSTORE_INTROSPECTION_CLIENT_ID: "plants",
    PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: files.file("secret"), PLANTSTORE_INTROSPECTION_AUDIENCES: testAudience,
  });
  const valuesOf = async (metric: string): Promise<Readonly<Record<string, number>>> => {
    const samples = readSamples(await scrape(configured)).filter(({ name }) => name === metric);
    return Object.fromEntries(samples.map(({ labels, value }) => [labels["file_path"], value]));
  };
  const paths = [
    `${files.file("cert")}, ${files.file("key")}`,
    ...["hashes", "jwks", "secret", "authority", "url"].map((name) => files.file(name)),
  ];
  const eachIs = (value: unknown): object => Object.fromEntries(paths.map((path) => [path, value]));
  expect(await valuesOf("plantstore_file_reload_successful")).toEqual(eachIs(1));
  const successes = await valuesOf("plantstore_file_reload_last_success_seconds");
  expect(Object.keys(successes).toSorted()).toEqual(paths.toSorted());
  for (const atS of Object.values(successes)) expect(Math.abs(Date.now() / 1_000 - atS)).toBeLessThan(600);
  put({ cert: "", hashes: "?", jwks: "?", secret: "\n", authority: "", url: "?" });
  await configured.reload();
  expect(await valuesOf("plantstore_file_reload_successful")).toEqual(eachIs(0));
  expect(await valuesOf("plantstore_file_reload_last_success_seconds")).toEqual(successes);
  put(texts);
  await configured.reload();
  expect(await valuesOf("plantstore_file_reload_successful")).toEqual(eachIs(1));
});

test("metrics report waiting deletions by reason, even for a store without a queue", async () => {
  await using simple = await start({ DATABASE_URL: "memory:", PLANTSTORE_ADMIN_ADDRESS: "0" });
  for (const each of [server, simple]) {
    const waiting = readSamples(await scrape(each)).filter(({ name }) => name === "plantstore_deletes_waiting");
    expect(waiting.map(({ labels, value }) => [labels, value])).toEqual([
      [{ plantstore_wait_reason: "batch" }, 0],
      [{ plantstore_wait_reason: "lock" }, 0],
    ]);
  }
});

test("a server without an admin address collects no metrics", async () => {
  await using plain = await start({ DATABASE_URL: "memory:" });
  expect(plain.admin).toBe(undefined);
  expect(plain.collectMetrics()).toEqual([]);
});

test("both pages about metrics have exactly the metrics, with their kinds and labels", async () => {
  const docs = ["docs", "protoport/docs"]
    .map((house) => readFileSync(new URL(`../../${house}/reference/metrics.md`, import.meta.url), "utf8"))
    .join("\n");
  const text = await scrape(server);
  const rows = [...docs.matchAll(/^\| `([a-z0-9_]+)` \| (counter|gauge|histogram) \|([^|]*)\|/gm)];
  const labelsOf = new Map<string, readonly string[]>(
    rows.map(([, name = "", , labels = ""]) => [name, labels.match(/[a-z0-9_]+/g) ?? []]),
  );
  for (const { name, labels } of readSamples(text)) {
    const known = labelsOf.get(name) ?? labelsOf.get(name.replace(/_(?:bucket|sum|count)$/, "")) ?? [];
    const found = Object.keys(labels).filter((label) => label !== "le" && !known.includes(label));
    expect(found, name).toEqual([]);
  }
  const documented = rows.map(([, name, kind]) => `${name} ${kind}`);
  const described = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, kind]) => `${name} ${kind}`);
  // Metrics in other configurations and in the proxy.
  // oxfmt-ignore
  const others = [
    "plantstore_workers gauge", "plantstore_build_info gauge", "gateway_upstream_connections gauge",
    "gateway_upstream_requests_active gauge", "gateway_upstream_requests_waiting gauge",
    "gateway_upstream_refusals_total counter", "gateway_upstream_retries_total counter",
    "gateway_upstream_queue_duration_seconds histogram", "rpc_client_call_duration_seconds histogram",
    "gateway_descriptors_conflicts gauge", "gateway_descriptors_reloads_total counter",
    "gateway_descriptors_reload_successful gauge", "gateway_descriptors_reload_last_success_seconds gauge",
    "gateway_file_reload_successful gauge", "gateway_file_reload_last_success_seconds gauge",
  ];
  expect([...described, ...others].toSorted()).toEqual(documented.toSorted());
});
