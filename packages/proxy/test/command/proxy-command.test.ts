import { once } from "node:events";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, SourceCodeInfo_LocationSchema, SourceCodeInfoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import {
  file_greenhouse_v1_greenhouse,
  GreenhouseService,
} from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { proxyCommand } from "../../src/command/proxy-command.ts";
import type { Gateway, GatewayOptions, ListenOptions } from "../../../gateway/src/index.ts";
import { createTestGateway } from "../../../testing/src/gateway/test-engine.ts";
import { createReflectionService, ServerReflection } from "../../../gateway/src/reflection/index.ts";
import { file_orders_v1_orders } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { file_streams_v1_stream_service } from "../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { createCertificate } from "../../../testing/src/carriers/certificate.ts";
import { listenOnLoopback } from "../../../testing/src/carriers/listen-on-loopback.ts";
import { within } from "../../../testing/src/deadline.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { projectFolder } from "../../../testing/src/process/child-program.ts";
import { startNode } from "../../../testing/src/process/command-line.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

// npx @plantstore/proxy

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

function write(name: string, content: string | Uint8Array): string {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
}

const greenhouses = commented(descriptorSetOf(file_greenhouse_v1_greenhouse));
const both = descriptorSetOf(file_greenhouse_v1_greenhouse, file_streams_v1_stream_service);
const pem = createCertificate("proxy");
const upstreamPem = createCertificate("upstream");

/** Descriptors with a comment at the first RPC of their last file. */
function commented(descriptorSet: Uint8Array): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
  const location = create(SourceCodeInfo_LocationSchema, { path: [6, 0, 2, 0], leadingComments: " How warm it is.\n" });
  for (const file of set.file.slice(-1)) file.sourceCodeInfo = create(SourceCodeInfoSchema, { location: [location] });
  return toBinary(FileDescriptorSetSchema, set);
}

/** A greenhouse that is called over gRPC, with server reflection. */
interface Upstream {
  readonly gateway: Gateway;
  readonly address: string;
  readonly seen: Headers[];
  [Symbol.asyncDispose](): Promise<void>;
}

async function startUpstream(options: ListenOptions = {}, admit?: GatewayOptions["admit"]): Promise<Upstream> {
  const seen: Headers[] = [];
  const gateway = createTestGateway({
    routes: (router: ConnectRouter) => {
      router.service(GreenhouseService, {
        getReading: ({ sensor }, { requestHeader }) => {
          seen.push(requestHeader);
          return { sensor, degreesCelsius: 21 };
        },
      });
      router.service(ServerReflection, createReflectionService([GreenhouseService, ServerReflection]));
    },
    ...(admit && { admit }),
  });
  const { port } = await gateway.listen({ host: "127.0.0.1", ...options });
  const address = `127.0.0.1:${String(port)}`;
  return { gateway, address, seen, [Symbol.asyncDispose]: () => gateway.close() };
}

/** The command while it runs. Dispose of it, and it is told to stop. */
class Running {
  readonly printed: string[] = [];
  readonly complaints: string[] = [];
  readonly done: Promise<number>;
  /** The signals that it listens to. */
  readonly heeded: string[] = [];
  #stop: (() => void) | undefined;
  #reload: (() => void) | undefined;

  constructor(words: readonly string[]) {
    this.done = proxyCommand(words, {
      print: (text) => void this.printed.push(text),
      complain: (text) => void this.complaints.push(text),
      stopped: () =>
        new Promise((resolve) => {
          this.heeded.push("SIGTERM");
          this.#stop = () => resolve("SIGTERM");
        }),
      onHangup: (reload) => {
        this.heeded.push("SIGHUP");
        this.#reload = reload;
      },
    });
  }

  /** Where a line says that something is. */
  async url(line: RegExp): Promise<string> {
    const found = (): string | undefined => this.printed.map((text) => line.exec(text)?.[1]).find((url) => url);
    await expect.poll(found, { timeout: 10_000 }).toBeDefined();
    return found() ?? "";
  }

  get serving(): Promise<string> {
    return this.url(/^(\S+) serves/);
  }

  /** Stops it, as SIGTERM does. */
  stop(): void {
    this.#stop?.();
  }

  hangUp(): void {
    // As the system does with a process that has no handler.
    if (this.#reload === undefined) throw new TypeError("a hangup ends the process");
    this.#reload();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    expect(await within(this.done, "the end of the command")).toBe(0);
  }
}

function proxy(...words: readonly string[]): Running {
  return new Running(["--port", "0", "--drain-delay-ms", "0", ...words]);
}

async function run(...words: readonly string[]): Promise<{ exitCode: number; printed: string; complaint: string }> {
  const running = proxy(...words);
  const exitCode = await within(running.done, "the command");
  return { exitCode, printed: running.printed.join("\n"), complaint: running.complaints.join("\n") };
}

async function get(url: string): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(url);
  return { status: response.status, body: await response.text() };
}

test("a service with reflection is served over REST, with description, page, health and metrics", async () => {
  await using upstream = await startUpstream();
  await using running = proxy(
    "--upstream",
    `dns:${upstream.address}`,
    "--reflection",
    "--admin-port",
    "0",
    "--cors",
    "*",
    "--host",
    "127.0.0.2",
  );
  const url = await running.serving;
  expect(url).toContain("http://127.0.0.2:");
  expect(await get(`${url}/sensors/4/reading`)).toEqual({ status: 200, body: '{"sensor":"4","degreesCelsius":21}' });
  expect(JSON.parse((await get(`${url}/openapi.json`)).body)).toMatchObject({
    info: { title: "greenhouse.v1.GreenhouseService" },
    paths: { "/sensors/{sensor}/reading": {} },
  });
  expect((await get(`${url}/docs`)).body).toContain("<html");
  const admin = await running.url(/^health and metrics at (\S+)/);
  expect(admin).toContain("http://127.0.0.2:");
  expect(await get(`${admin}/readyz`)).toEqual({ status: 200, body: '{"status":"ready"}' });
  const shop = { origin: "https://shop.example" };
  expect((await fetch(url, { headers: shop })).headers.get("access-control-allow-origin")).toBe("*");
  const metrics = (await get(`${admin}/metrics`)).body;
  expect(metrics).toContain('http_route="/sensors/{sensor}/reading"');
  expect(metrics).toContain("gateway_connections{");
  expect(metrics).toContain("gateway_ready 1");
});

test("options choose services, rules, options of REST, deadlines, origins, and leave the page out", async () => {
  await using upstream = await startUpstream();
  const rules = write(
    "rules.yaml",
    `http:\n  rules:\n  - selector: ${GreenhouseService.typeName}.GetReading\n    get: /r/{sensor}\n`,
  );
  const from = ["--upstream", `http://${upstream.address}`, "--descriptors", write("both.binpb", both)];
  const chosen = ["--service", "greenhouse.*", "--omit", "greenhouse.v1.GreenhouseService.WaterBed", "--rules", rules];
  const limits = ["--rest", "lenient", "--timeout-ms", "5000", "--timeout-max-ms", "9000"];
  const pages = ["--cors", "https://shop.example", "--no-docs"];
  await using running = proxy(...from, ...chosen, ...limits, ...pages);
  const url = await running.serving;
  expect(running.printed.at(-1)).toBe(`${url} serves greenhouse.v1.GreenhouseService`);
  const response = await fetch(`${url}/r/4?unknown=1`, { headers: { origin: "https://shop.example" } });
  expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([200, "https://shop.example"]);
  expect(upstream.seen[0]?.get("grpc-timeout")).toMatch(/^(?:4\d{3}|5000)m$/);
  const headers = { "content-type": "application/json", "connect-timeout-ms": "60000" };
  await fetch(`${url}/greenhouse.v1.GreenhouseService/GetReading`, { method: "POST", headers, body: "{}" });
  expect(upstream.seen[1]?.get("grpc-timeout")).toMatch(/^(?:8\d{3}|9000)m$/);
  expect((await get(`${url}/sensors/4/reading`)).status).toBe(404);
  expect((await get(`${url}/openapi.json`)).status).toBe(404);
  expect((await fetch(`${url}/beds/1:water`, { method: "POST" })).status).toBe(404);
});

test("TLS is served with a certificate that a hangup renews, and spoken to an upstream", async () => {
  await using upstream = await startUpstream({ tls: { ...upstreamPem, requestCert: true, ca: pem.cert } });
  const [cert, key, ca] = [write("cert.pem", pem.cert), write("key.pem", pem.key), write("ca.pem", upstreamPem.cert)];
  const words = ["--tls-cert", cert, "--tls-key", key, "--upstream-ca", ca, "--upstream-name", "localhost"];
  const own = ["--upstream-cert", cert, "--upstream-key", key];
  await using running = proxy("--upstream", `https://${upstream.address}`, "--reflection", ...words, ...own);
  const { port } = new URL(await running.serving);
  const commonName = async (): Promise<string | undefined> => {
    const socket = connect({ host: "127.0.0.1", port: Number(port), rejectUnauthorized: false });
    await within(once(socket, "secureConnect"), "a connection");
    const name = socket.getPeerCertificate().subject.CN;
    socket.destroy();
    return typeof name === "string" ? name : undefined;
  };
  expect(await commonName()).toBe("proxy");
  const renewed = createCertificate("renewed");
  write("cert.pem", renewed.cert);
  write("key.pem", renewed.key);
  running.hangUp();
  expect(await commonName()).toBe("renewed");
  write("key.pem", "none");
  running.hangUp();
  await expect.poll(() => running.complaints).toEqual([expect.stringContaining("kept the previous certificate: ")]);
  expect(await commonName()).toBe("renewed");
});

test("a file of descriptors is read again when it changes, and what is wrong with it leaves the old ones", async () => {
  await using upstream = await startUpstream();
  const file = write("watched.binpb", greenhouses);
  await using running = proxy("--upstream", `http://${upstream.address}`, "--descriptors", file);
  const url = await running.serving;
  const described = async (): Promise<string> => (await get(`${url}/openapi.json`)).body;
  expect(await described()).not.toContain("streams.v1");
  expect(await described()).toContain("How warm it is");
  renameSync(write("next.binpb", both), file);
  await expect.poll(described, { timeout: 10_000 }).toContain("streams.v1");
  expect(running.printed.at(-1)).toContain("reloaded the descriptors\n  + /streams.v1.StreamService/");
  write("watched.binpb", both.subarray(0, 1_000));
  await expect.poll(() => running.complaints, { timeout: 10_000 }).not.toEqual([]);
  expect(running.complaints.join()).toContain("descriptors could not be reloaded: ");
  expect(running.printed.join()).not.toMatch(/reloaded the.*reloaded the/s);
  expect((await get(`${url}/sensors/4/reading`)).status).toBe(200);
});

/** Lets reflection in with two fields, and calls without them. */
const admitByFields: GatewayOptions["admit"] = ({ header, procedure }) => {
  const isGiven = header.get("authorization") === "Bearer a:b" && header.get("x-team") === "green";
  if (isGiven !== procedure?.includes("ServerReflection")) throw new ConnectError("not you", Code.Unauthenticated);
};

test("reflection that wants a credential gets the fields that are given for it, and calls do not", async () => {
  await using upstream = await startUpstream({}, admitByFields);
  const words = ["--upstream", `http://${upstream.address}`, "--reflection"];
  expect((await run(...words)).complaint).toContain("its reflection fails: [unauthenticated] not you");
  const fields = ["--reflect-header", "Authorization: Bearer a:b", "--reflect-header", "x-team:green"];
  await using running = proxy(...words, ...fields);
  expect((await get(`${await running.serving}/sensors/4/reading`)).status).toBe(200);
});

test("a hangup has reflection read again", async () => {
  await using upstream = await startUpstream();
  await using running = proxy("--upstream", `http://${upstream.address}`, "--reflection");
  await running.serving;
  await upstream.gateway.close();
  running.hangUp();
  await expect.poll(() => running.complaints).toEqual([expect.stringContaining("its reflection fails: [unavailable]")]);
});

test("with --wait it serves as soon as there are descriptors, and is not ready before", async () => {
  const file = folder.file("later.binpb");
  await using upstream = await startUpstream();
  const words = ["--upstream", `http://${upstream.address}`, "--descriptors", file, "--wait", "--admin-port", "0"];
  await using running = proxy(...words);
  const admin = await running.url(/^health and metrics at (\S+)/);
  await expect.poll(() => running.complaints).toEqual([expect.stringContaining("waits for descriptors: ENOENT")]);
  expect(await get(`${admin}/readyz`)).toEqual({
    status: 503,
    body: '{"status":"not ready","obstacles":["descriptors"]}',
  });
  renameSync(write("made.binpb", greenhouses), file);
  expect((await get(`${await running.serving}/sensors/4/reading`)).status).toBe(200);
  expect((await get(`${admin}/readyz`)).status).toBe(200);
  // Of each attempt there would be another.
  const { body } = await get(`${admin}/metrics`);
  expect(body.match(/^# TYPE http_server_request_duration_seconds/gm)).toHaveLength(1);
});

test("with --wait it ends when it is told to, also before there are descriptors", async () => {
  await using running = proxy("--upstream", "http://127.0.0.1:1", "--descriptors", folder.file("never"), "--wait");
  await expect.poll(() => running.complaints.length).toBe(1);
  // Another attempt fails in the same way.
  await pause(1_200);
  expect(running.complaints).toHaveLength(1);
});

test("it leaves nothing behind when it is told to stop before it serves", async () => {
  const printed: string[] = [];
  const print = (text: string): unknown => printed.push(text);
  const words = ["--upstream", "http://127.0.0.1:1", "--descriptors", write("late.binpb", greenhouses)];
  const terminal = { print, complain: print, stopped: () => Promise.resolve(), onHangup: () => undefined };
  expect(await proxyCommand(words, terminal)).toBe(0);
  expect(printed).toEqual([]);
});

test("it ends at once when it is told to while an upstream is silent, and lives through a hangup", async () => {
  const silent = createServer(() => undefined);
  const connected = once(silent, "connection");
  const upstream = await listenOnLoopback(silent);
  const tls = ["--tls-cert", write("early-cert.pem", pem.cert), "--tls-key", write("early-key.pem", pem.key)];
  const started = performance.now();
  {
    await using running = proxy("--upstream", upstream, "--reflection", ...tls);
    await within(connected, "a connection");
    running.hangUp();
  }
  // A connection may take 20 s, and calls may go on for as long.
  expect(performance.now() - started).toBeLessThan(8_000);
  silent.close();
});

test("a call that takes longer than a second is answered after it is told to stop", async () => {
  const asked = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  await using upstream = await startUpstream({}, () => {
    asked.resolve();
    return told.promise;
  });
  const file = write("slow.binpb", greenhouses);
  const words = ["--upstream", `http://${upstream.address}`, "--descriptors", file, "--admin-port", "0"];
  const running = proxy(...words);
  const answer = get(`${await running.serving}/sensors/4/reading`);
  const admin = await running.url(/^health and metrics at (\S+)/);
  await within(asked.promise, "the call");
  const ended = running[Symbol.asyncDispose]();
  await pause(1_200);
  expect((await get(`${admin}/readyz`)).body).toBe('{"status":"not ready","obstacles":["draining"]}');
  told.resolve();
  expect((await answer).status).toBe(200);
  await ended;
});

test("a draining proxy is not ready, and serves new connections until the drain delay is over", async () => {
  await using upstream = await startUpstream();
  const words = ["--upstream", `http://${upstream.address}`, "--reflection", "--admin-port", "0"];
  await using running = proxy(...words, "--drain-delay-ms", "3000");
  const url = await running.serving;
  const admin = await running.url(/^health and metrics at (\S+)/);
  const stoppedAt = performance.now();
  running.stop();
  const notReady = { status: 503, body: '{"status":"not ready","obstacles":["draining"]}' };
  await expect.poll(() => get(`${admin}/readyz`)).toEqual(notReady);
  for (let count = 0; count < 3; count += 1) {
    const response = await fetch(`${url}/sensors/4/reading`, { headers: { connection: "close" } });
    expect(response.status).toBe(200);
  }
  expect(await within(running.done, "the end of the command")).toBe(0);
  expect(performance.now() - stoppedAt).toBeGreaterThan(2_990);
  await expect(get(`${url}/sensors/4/reading`)).rejects.toThrow("fetch failed");
});

test("a call that does not end is cut when the time for the drain is over", async () => {
  const asked = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  await using upstream = await startUpstream({}, () => {
    asked.resolve();
    return told.promise;
  });
  const words = ["--upstream", `http://${upstream.address}`, "--descriptors", write("cut.binpb", greenhouses)];
  {
    await using running = proxy(...words, "--drain-timeout-ms", "1");
    const answer = get(`${await running.serving}/sensors/4/reading`);
    const cut = expect(answer).rejects.toThrow("fetch failed");
    await within(asked.promise, "the call");
    running.stop();
    await cut;
  }
  told.resolve();
});

test("why an upstream does not answer is told once, and not to callers", async () => {
  const words = ["--upstream", "http://127.0.0.1:1", "--descriptors", write("g.binpb", greenhouses)];
  await using running = proxy(...words, "--admin-port", "0");
  const url = await running.serving;
  const admin = await running.url(/^health and metrics at (\S+)/);
  const readyAfterCall = async (): Promise<string> => {
    await get(`${url}/sensors/4/reading`);
    return (await get(`${admin}/readyz`)).body;
  };
  await expect.poll(readyAfterCall).toBe('{"status":"not ready","obstacles":["upstream"]}');
  for (let call = 0; call < 3; call++) {
    const { status, body } = await get(`${url}/sensors/4/reading`);
    expect(status).toBe(503);
    expect(body).not.toContain("127.0.0.1");
  }
  expect(running.complaints).toEqual([
    expect.stringMatching(
      /GetReading: \[unavailable\] cannot connect to 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1$/,
    ),
  ]);
});

test("rules that are of no RPC are told, at the start and when descriptors change", async () => {
  const file = write("rules-of.binpb", greenhouses);
  const known = "- selector: greenhouse.v1.GreenhouseService.GetReading\n  get: /r/{sensor}\n";
  const rules = write("unknown.yaml", `rules:\n- selector: other.v1.Service.Nope\n  get: /nope\n${known}`);
  const told = "the rule for other.v1.Service.Nope has no effect: no RPC that is served has this name";
  const words = ["--upstream", "http://127.0.0.1:1", "--descriptors", file, "--rules", rules];
  expect(await run(...words, "--check")).toMatchObject({ exitCode: 0, complaint: told });
  await using running = proxy(...words);
  expect((await get(`${await running.serving}/openapi.json`)).body).toContain('"/r/{sensor}"');
  expect(running.complaints).toEqual([told]);
  renameSync(write("next.binpb", both), file);
  await expect.poll(() => running.complaints).toEqual([told, told]);
});

test("--check looks at the certificate", async () => {
  const words = ["--upstream", "http://127.0.0.1:1", "--descriptors", write("checked.binpb", greenhouses), "--check"];
  const certificate = write("checked-cert.pem", pem.cert);
  const tls = (key: string): string[] => ["--tls-cert", certificate, "--tls-key", key];
  expect(await run(...words, ...tls(write("checked-key.pem", pem.key)))).toMatchObject({ exitCode: 0, complaint: "" });
  const other = write("other-key.pem", upstreamPem.key);
  expect(await run(...words, ...tls(other))).toMatchObject({
    exitCode: 2,
    complaint: expect.stringContaining("--tls-cert and --tls-key cannot be used: "),
  });
  expect(await run(...words, ...tls("/none"))).toMatchObject({
    exitCode: 2,
    complaint: expect.stringContaining("/none cannot be read: ENOENT"),
  });
});

const outdated = createCertificate("expired", new Date("2020-03-01T00:00:00Z"));
const early = createCertificate("early", undefined, new Date("2098-03-01T00:00:00Z"));

test.each(
  ["--tls-cert", "--upstream-cert", "--upstream-ca"].flatMap((option) => [
    { option, certificate: outdated, reason: "expired at 2020-03-01T00:00:00.000Z" },
    { option, certificate: early, reason: "is not valid before 2098-03-01T00:00:00.000Z" },
  ]),
)("--check refuses a certificate of $option that $reason", async ({ option, certificate: { cert, key }, reason }) => {
  const [certificate, keyFile] = [write("expired.pem", cert), write("expired-key.pem", key)];
  const checked = ["--descriptors", write("expired.binpb", greenhouses), "--check", option];
  const words = ["--upstream", "https://127.0.0.1:1", ...checked];
  const withKey = option === "--upstream-ca" ? [] : [option.replace("cert", "key"), keyFile];
  expect(await run(...words, certificate, ...withKey)).toEqual({
    exitCode: 2,
    printed: "",
    complaint: `the certificate of ${option} ${reason}`,
  });
  // Others of a chain may be left over from an earlier one; of several authorities one is enough.
  const renewed = write("renewed.pem", pem.cert + cert);
  const renewedKey = withKey.length === 0 ? [] : [withKey[0] ?? "", write("renewed-key.pem", pem.key)];
  expect(await run(...words, renewed, ...renewedKey)).toMatchObject({ exitCode: 0, complaint: "" });
  if (option === "--upstream-ca") {
    const turned = write("turned.pem", cert + pem.cert);
    expect(await run(...words, turned)).toMatchObject({ exitCode: 0, complaint: "" });
  }
});

test("--check tells of an authority that cannot be read, after others that can", async () => {
  const broken = pem.cert.replace(/[A-Za-z0-9+/]{20}/, "A".repeat(20));
  const words = ["--upstream", "https://127.0.0.1:1", "--descriptors", write("broken.binpb", greenhouses), "--check"];
  expect(await run(...words, "--upstream-ca", write("broken.pem", pem.cert + broken))).toMatchObject({
    exitCode: 2,
    printed: "",
    complaint: expect.stringContaining("a certificate of --upstream-ca cannot be read: "),
  });
});

describe("one of two upstreams that cannot be reached", () => {
  const missing = "http://127.0.0.1:1";
  const words = (upstream: Upstream, ...more: readonly string[]): readonly string[] => [
    "--upstream",
    missing,
    "--upstream",
    `http://${upstream.address}`,
    "--reflection",
    ...more,
  ];
  const degraded = [`upstream ${missing}`];

  test.each([
    { option: [], ready: { status: 200, body: { status: "ready", degraded } } },
    { option: ["--require-all"], ready: { status: 503, body: { status: "not ready", obstacles: degraded } } },
  ])("is named by /readyz with $option, while the other is served", async ({ option, ready }) => {
    await using upstream = await startUpstream();
    await using running = proxy(...words(upstream, "--admin-port", "0", ...option));
    const url = await running.serving;
    expect((await get(`${url}/sensors/4/reading`)).status).toBe(200);
    expect((await get(`${url}/nothing`)).status).toBe(503);
    const admin = await running.url(/^health and metrics at (\S+)/);
    const { status, body } = await get(`${admin}/readyz`);
    expect({ status, body: JSON.parse(body) as unknown }).toEqual(ready);
    expect((await get(`${admin}/metrics`)).body).toContain(`gateway_upstream_connections{upstream="${missing}"} 0`);
    expect(running.complaints[0]).toMatch(
      /^serves without http:\/\/127\.0\.0\.1:1: 127\.0\.0\.1:1: its reflection fails: \[unavailable\] cannot connect/,
    );
    // It is tried again, and is complained of once in ten seconds.
    await expect.poll(() => running.complaints.length, { timeout: 10_000 }).toBe(2);
    await pause(2_500);
    expect(running.complaints[1]).toMatch(/^descriptors could not be reloaded: 127\.0\.0\.1:1: its reflection fails/);
    expect(running.complaints).toHaveLength(2);
  });

  test("fails --check, which prints what the other has", async () => {
    await using upstream = await startUpstream();
    const { exitCode, printed, complaint } = await run(...words(upstream, "--check"));
    expect([exitCode, printed]).toEqual([1, expect.stringContaining("greenhouse.v1.GreenhouseService.GetReading")]);
    expect(complaint).toContain(`serves without ${missing}: `);
  });
});

test("--check says what would be served, or why nothing would", async () => {
  await using upstream = await startUpstream();
  const words = ["--upstream", `http://${upstream.address}`, "--reflection", "--check", "--admin-port", "0"];
  expect(await run(...words)).toEqual({
    exitCode: 0,
    printed: `It would serve:
  greenhouse.v1.GreenhouseService

and over REST:
  greenhouse.v1.GreenhouseService.GetReading: GET /sensors/{sensor}/reading
  greenhouse.v1.GreenhouseService.WaterBed: POST /beds/{bed}:water`,
    complaint: "",
  });
  const checking = proxy(...words);
  await within(checking.done, "the command");
  // So that a signal ends it, and not with the exit code of one that could serve.
  expect(checking.heeded).toEqual([]);
  const wrong = write("wrong.yaml", `rules:\n- selector: ${GreenhouseService.typeName}.GetReading\n  get: /{nope}\n`);
  const { exitCode, complaint } = await run(...words, "--rules", wrong);
  expect([exitCode, complaint]).toEqual([
    1,
    expect.stringContaining("it cannot serve: the HTTP rules have problems:\n"),
  ]);
});

describe("what cannot be used is said, with exit code 2, or 1 if it is the upstream's", () => {
  const set = write("set.binpb", descriptorSetOf(file_orders_v1_orders));
  const local = ["--upstream", "http://127.0.0.1:1"];
  test.each<{ words: readonly string[]; says: string; exitCode?: number }>([
    { words: [], says: "--upstream is missing\n\nUsage: npx @plantstore/proxy" },
    { words: ["x"], says: "x belongs to no option" },
    { words: ["--nope"], says: "Unknown option '--nope'" },
    { words: local, says: "one of --reflection and --descriptors says" },
    { words: [...local, "--reflection", "--descriptors", set], says: "one of --reflection and --descriptors says" },
    {
      words: [...local, "--upstream", "http://b", "--descriptors", set],
      says: "--descriptors belongs to one upstream",
    },
    { words: ["--upstream", "b", "--descriptors", set], says: '"b" is not the address of a server' },
    {
      words: [...local, "--descriptors", set, "--port", "65536"],
      says: "--port is a number from 0 to 65535, not 65536",
    },
    { words: [...local, "--descriptors", set, "--timeout-ms", "1s"], says: "--timeout-ms is a number from 1 to" },
    { words: [...local, "--descriptors", set, "--timeout-ms", "0"], says: "--timeout-ms is a number from 1 to" },
    { words: [...local, "--descriptors", set, "--timeout-max-ms", "0"], says: "--timeout-max-ms is a number from 1" },
    ...["--timeout-ms", "--timeout-max-ms"].map((option) => ({
      words: [...local, "--descriptors", set, option, "86400001"],
      says: `${option} is a number from 1 to 86400000, not 86400001`,
    })),
    {
      words: [...local, "--descriptors", set, "--admin-port", "65536"],
      says: "--admin-port is a number from 0 to 65535",
    },
    ...["http://127.0.0.1:1", "HTTP://127.0.0.1:1", "unix:/p"].flatMap((upstream) =>
      ["--upstream-ca", "--upstream-name"].map((option) => ({
        words: ["--upstream", upstream, "--descriptors", set, option, set],
        says: `${upstream} is without TLS`,
      })),
    ),
    { words: [...local, "--descriptors", set, "--tls-cert", set], says: "--tls-cert and --tls-key belong together" },
    { words: [...local, "--descriptors", set, "--tls-key", set], says: "--tls-cert and --tls-key belong together" },
    {
      words: [...local, "--descriptors", set, "--upstream-key", set],
      says: "--upstream-cert and --upstream-key belong",
    },
    {
      words: ["--upstream", "https://unix:1", "--descriptors", set, "--upstream-ca", "/none"],
      says: "/none cannot be read: ENOENT",
    },
    ...["", "no certificate"].flatMap((text, at) => {
      const file = write(`${at}.pem`, text);
      return [
        ["--upstream", "https://127.0.0.1:1", "--descriptors", set, "--upstream-ca", file],
        [...local, "--descriptors", set, "--tls-cert", file, "--tls-key", file, "--check"],
      ].map((words) => ({ words, says: `${file} has no certificate and no key in PEM` }));
    }),
    {
      words: [...local, "--descriptors", set, "--rest-profile", "loose"],
      says: "--rest-profile must be one of strict, google, grpc-gateway, envoy, got loose",
    },
    { words: [...local, "--descriptors", set, "--rest", "strict"], says: "--rest knows no strict, only lenient" },
    { words: [...local, "--descriptors", set, "--rules", "/none"], says: "/none cannot be read: ENOENT" },
    ...[[], ["--check", "--wait"]].map((more) => ({
      words: [...local, "--descriptors", "/none", ...more],
      says: "it cannot serve: ENOENT",
      exitCode: 1,
    })),
    { words: [...local, "--descriptors", "/dev/zero"], says: "/dev/zero is not a regular file", exitCode: 1 },
    { words: [...local, "--descriptors", set, "--service", "a.B"], says: "no service that is passed on", exitCode: 1 },
    { words: [...local, "--descriptors", set, "--host", "192.0.2.1"], says: "EADDRNOTAVAIL", exitCode: 1 },
    ...["secret", ": secret", "a b: secret", "a: sec\nret"].map((field) => ({
      words: [...local, "--reflection", "--reflect-header", field],
      says: "--reflect-header is a name, a colon and a value",
    })),
    { words: [...local, "--reflection"], says: "its reflection fails: [unavailable] cannot connect", exitCode: 1 },
  ])("$words", async ({ words, says, exitCode = 2 }) => {
    const result = await run(...words);
    expect(result).toMatchObject({ exitCode, printed: "" });
    expect(result.complaint).toContain(says);
  });

  test("a port that is in use", async () => {
    await using other = await startUpstream();
    const port = other.address.slice(other.address.lastIndexOf(":") + 1);
    const result = await run(...local, "--descriptors", set, "--port", port);
    expect(result).toMatchObject({ exitCode: 1, printed: "" });
    expect(result.complaint).toContain(`EADDRINUSE: address already in use 127.0.0.1:${port}`);
  });
});

test.each([
  { signals: ["SIGTERM"], exitCode: 0, when: "once its calls have ended" },
  { signals: ["SIGINT", "SIGTERM"], exitCode: 1, when: "at once" },
] as const)("as a program it lives through a hangup, and ends by $signals $when", async ({ signals, exitCode }) => {
  const asked = Promise.withResolvers<void>();
  const told = Promise.withResolvers<void>();
  await using upstream = await startUpstream({}, () => {
    asked.resolve();
    return told.promise;
  });
  const words = ["--port", "0", "--drain-delay-ms", "0", "--upstream", `http://${upstream.address}`];
  const main = join(projectFolder, "packages/proxy/src/command/main.ts");
  const file = write("program.binpb", greenhouses);
  await using program = startNode([main, ...words, "--descriptors", file], folder.path);
  const [, url = ""] = await program.find(/^(\S+) serves/m);
  program.process.kill("SIGHUP");
  const answer = get(`${url}/sensors/4/reading`).catch(() => undefined);
  await within(asked.promise, "the call");
  for (const signal of signals) program.process.kill(signal);
  if (exitCode === 0) told.resolve();
  expect(await program.end()).toBe(exitCode);
  expect((await answer)?.status).toBe(exitCode === 0 ? 200 : undefined);
  told.resolve();
});

test("--help prints how it is used, in lines that fit", async () => {
  const { exitCode, printed } = await run("--help");
  expect(exitCode).toBe(0);
  expect(Math.max(...printed.split("\n").map((line) => line.length))).toBeLessThanOrEqual(120);
  const text = readFileSync("packages/proxy/src/command/proxy-settings.ts", "utf8");
  const options = [...text.matchAll(/^ {4}"?([a-z-]+)"?: (?:text|several|flag),$/gm)].map(([, name]) => `--${name}`);
  expect(options.length).toBeGreaterThan(15);
  expect(options.filter((option) => !printed.includes(option))).toEqual([]);
});
