import { once } from "node:events";
import { renameSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, SourceCodeInfo_LocationSchema, SourceCodeInfoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { proxyCommand } from "../../../../src/command/program.ts";
import type { GatewayOptions } from "../../../../../gateway/src/index.ts";
import { descriptorSetOf, file_orders_v1_orders, ProxyCommand, runProxyCommand } from "@protoport/testing/proxy";
import { createCertificate, listenOnLoopback } from "@protoport/testing";
import { file_grpc_health_v1_health } from "../../../../../gateway/src/protobuf/gen/grpc/health/v1/health_pb.ts";
import { file_streams_v1_stream_service } from "../../../../../testing/src/gen/streams/v1/stream_service_pb.ts";
import { createTempFolder, projectFolder, startNode, within } from "@protoport/testing/process";
import { startReflectedGreenhouse } from "../../../support/greenhouses.ts";

const folder = createTempFolder();
const { write } = folder;
afterAll(() => folder[Symbol.dispose]());
const greenhouses = addComment(descriptorSetOf(GreenhouseService.file));
const both = descriptorSetOf(GreenhouseService.file, file_streams_v1_stream_service);
const pem = createCertificate("proxy");

function addComment(descriptorSet: Uint8Array): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
  const location = create(SourceCodeInfo_LocationSchema, { path: [6, 0, 2, 0], leadingComments: " How warm it is.\n" });
  for (const file of set.file.slice(-1)) file.sourceCodeInfo = create(SourceCodeInfoSchema, { location: [location] });
  return toBinary(FileDescriptorSetSchema, set);
}

const getReading = ({ sensor }: { readonly sensor: string }) => ({ sensor, degreesCelsius: 21 });

async function startUpstream(admit?: GatewayOptions["admit"]) {
  const upstream = await startReflectedGreenhouse({ getReading }, admit && { admit });
  return Object.assign(upstream, { authority: `127.0.0.1:${upstream.address.port}` });
}

function proxy(...args: readonly string[]): ProxyCommand {
  return new ProxyCommand(["--port", "0", "--drain-delay-ms", "0", ...args]);
}

const run = (...args: readonly string[]) => runProxyCommand("--port", "0", "--drain-delay-ms", "0", ...args);

async function get(url: string): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(url);
  return { status: response.status, body: await response.text() };
}

test("a service with reflection is served over REST with docs and metrics", async () => {
  await using upstream = await startUpstream();
  const args = ["--reflection", "--admin-port", "0", "--cors", "*", "--host", "127.0.0.2"];
  await using running = proxy("--upstream", `dns:${upstream.authority}`, ...args);
  const url = await running.serving;
  expect(url).toContain("http://127.0.0.2:");
  expect(running.printed.at(-1)).toBe(`${url} serves greenhouse.v1.GreenhouseService`);
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
  expect(metrics).toContain("process_memory_usage_bytes ");
  const upstreamLabel = `upstream="dns:${upstream.authority}"`;
  expect(metrics).toContain(`gateway_descriptors_reloads_total{${upstreamLabel},result="success"} 1`);
  const called = `${upstreamLabel},rpc_system_name="grpc",rpc_method="greenhouse.v1.GreenhouseService/GetReading"`;
  expect(metrics).toContain(`rpc_client_call_duration_seconds_count{${called},rpc_response_status_code="OK"} 1`);
});

test("a rule for / replaces the redirect to the docs page", async () => {
  await using upstream = await startUpstream();
  const selector = `${GreenhouseService.typeName}.GetReading`;
  const rules = write("root.yaml", `http:\n  rules:\n  - selector: ${selector}\n    get: /\n`);
  const from = ["--upstream", `http://${upstream.authority}`, "--reflection"];
  const statusOf = async (...args: readonly string[]): Promise<number> => {
    await using running = proxy(...from, ...args);
    return (await fetch(await running.serving, { redirect: "manual" })).status;
  };
  expect([await statusOf("--rules", rules), await statusOf()]).toEqual([200, 302]);
});

test("a changed descriptor file is read again, and used if valid", async () => {
  await using upstream = await startUpstream();
  const file = write("watched.binpb", greenhouses);
  await using running = proxy("--upstream", `http://${upstream.authority}`, "--descriptors", file);
  const url = await running.serving;
  const described = async (): Promise<string> => (await get(`${url}/openapi.json`)).body;
  expect(await described()).not.toContain("streams.v1");
  expect(await described()).toContain("How warm it is");
  renameSync(write("next.binpb", both), file);
  await expect.poll(described).toContain("streams.v1");
  expect(running.printed.at(-1)).toContain("descriptors reloaded\n  + /streams.v1.StreamService/");
  write("watched.binpb", both.subarray(0, 1_000));
  await expect.poll(() => running.errors).not.toEqual([]);
  expect(running.errors.join()).toContain("cannot reload the descriptors: ");
  expect(running.printed.join()).not.toMatch(/descriptors reloaded.*descriptors reloaded/s);
  expect((await get(`${url}/sensors/4/reading`)).status).toBe(200);
});

/** Admits reflection calls with two header fields, and other calls without them. */
const admitByFields: GatewayOptions["admit"] = ({ header, procedure }) => {
  const hasFields = header.get("authorization") === "Bearer a:b" && header.get("x-team") === "green";
  if (hasFields !== procedure?.includes("ServerReflection")) throw new ConnectError("not you", Code.Unauthenticated);
};

test("--reflect-header fields are sent with reflection calls only", async () => {
  await using upstream = await startUpstream(admitByFields);
  const args = ["--upstream", `http://${upstream.authority}`, "--reflection"];
  expect((await run(...args)).errors).toContain("server reflection failed: [unauthenticated] not you");
  const fields = ["--reflect-header", "Authorization: Bearer a:b", "--reflect-header", "x-team:green"];
  await using running = proxy(...args, ...fields);
  expect((await get(`${await running.serving}/sensors/4/reading`)).status).toBe(200);
});

test("with --wait, the proxy serves once the upstream provides descriptors", async () => {
  const file = folder.file("later.binpb");
  await using upstream = await startUpstream();
  const args = ["--upstream", `http://${upstream.authority}`, "--descriptors", file, "--wait", "--admin-port", "0"];
  await using running = proxy(...args);
  const admin = await running.url(/^health and metrics at (\S+)/);
  await expect
    .poll(() => running.errors)
    .toEqual([expect.stringContaining("waiting for descriptors: --descriptors requires a readable file: ENOENT")]);
  const notReady = '{"status":"not ready","obstacles":["descriptors"]}';
  expect(await get(`${admin}/readyz`)).toEqual({ status: 503, body: notReady });
  renameSync(write("made.binpb", greenhouses), file);
  expect((await get(`${await running.serving}/sensors/4/reading`)).status).toBe(200);
  expect((await get(`${admin}/readyz`)).status).toBe(200);
  // The metrics must be registered only once, although attempts repeat.
  const { body } = await get(`${admin}/metrics`);
  expect(body.match(/^# TYPE http_server_request_duration_seconds/gm)).toHaveLength(1);
});

test("with --wait, SIGTERM stops a proxy that still waits for descriptors", async () => {
  await using running = proxy("--upstream", "http://127.0.0.1:1", "--descriptors", folder.file("never"), "--wait");
  await expect.poll(() => running.errors.length).toBe(1);
  // Waits until a second attempt has failed for the same reason.
  await pause(1_200);
  expect(running.errors).toHaveLength(1);
});

test("a proxy stopped before it serves exits with 0, printing nothing", async () => {
  const printed: string[] = [];
  const print = (text: string): unknown => printed.push(text);
  const args = ["--upstream", "http://127.0.0.1:1", "--descriptors", write("late.binpb", greenhouses)];
  const terminal = { out: print, err: print, stopRequested: () => Promise.resolve(), onHangup: () => undefined };
  expect([await proxyCommand(args, terminal), printed]).toEqual([0, []]);
});

test("a proxy with a silent upstream survives SIGHUP and stops on SIGTERM", async () => {
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
  // Without an immediate stop, a connection attempt may take 20 s, and calls have 20 s to finish.
  expect(performance.now() - started).toBeLessThan(8_000);
  silent.close();
});

/** Returns an `admit` whose calls wait for `release`, and a promise that resolves with the first call. */
function holdCalls() {
  const [received, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const admit = (): Promise<void> => {
    received.resolve();
    return released.promise;
  };
  return { received: received.promise, release: released.resolve, admit };
}

test("a draining proxy is not ready, but accepts connections during the delay", async () => {
  await using upstream = await startUpstream();
  const args = ["--upstream", `http://${upstream.authority}`, "--reflection", "--admin-port", "0"];
  await using running = proxy(...args, "--drain-delay-ms", "3000");
  const url = await running.serving;
  const admin = await running.url(/^health and metrics at (\S+)/);
  const stoppedAt = performance.now();
  running.stop();
  const notReady = { status: 503, body: '{"status":"not ready","obstacles":["draining"]}' };
  await expect.poll(() => get(`${admin}/readyz`)).toEqual(notReady);
  for (let count = 0; count < 3; count += 1)
    expect((await fetch(`${url}/sensors/4/reading`, { headers: { connection: "close" } })).status).toBe(200);
  expect(await within(running.done, "the end of the command")).toBe(0);
  expect(performance.now() - stoppedAt).toBeGreaterThan(2_990);
  await expect(get(`${url}/sensors/4/reading`)).rejects.toThrow("fetch failed");
});

test("the cause of upstream failures is logged once, and hidden from callers", async () => {
  const args = ["--upstream", "http://127.0.0.1:1", "--descriptors", write("g.binpb", greenhouses)];
  await using running = proxy(...args, "--admin-port", "0");
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
  const cause = /GetReading: \[unavailable\] cannot connect to 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1$/;
  expect(running.errors).toEqual([expect.stringMatching(cause)]);
});

test("rules without a served RPC are logged after each descriptor change", async () => {
  const file = write("rules-of.binpb", both);
  const unselected = "streams.v1.StreamService.Count";
  const known = "- selector: greenhouse.v1.GreenhouseService.GetReading\n  get: /r/{sensor}\n";
  const rules = write("unselected.yaml", `rules:\n- selector: ${unselected}\n  get: /nope\n${known}`);
  const warning = `the rule for ${unselected} has no effect: no served RPC has this name`;
  const args = ["--upstream", "http://127.0.0.1:1", "--descriptors", file, "--rules", rules];
  await using running = proxy(...args, "--service", "greenhouse.*");
  expect((await get(`${await running.serving}/openapi.json`)).body).toContain('"/r/{sensor}"');
  expect(running.errors).toEqual([warning]);
  renameSync(write("next.binpb", greenhouses), file);
  await expect.poll(() => running.errors).toEqual([warning, warning]);
});

test("descriptors without HTTP annotations are reported", async () => {
  const file = write("bare.binpb", descriptorSetOf(file_grpc_health_v1_health));
  const args = ["--upstream", "http://127.0.0.1:1", "--descriptors", file, "--check"];
  expect((await run(...args)).errors).toMatch(/no service to proxy; grpc\.health\.v1\.Health is not selected$/);
  const { exitCode, errors } = await run(...args, "--service", "grpc.health.*");
  expect(exitCode).toBe(0);
  expect(errors).toMatch(/^no RPC has a REST route: .*; use --descriptors .*, or --rules$/);
});

describe("an unreachable upstream of two", () => {
  const missing = "http://127.0.0.1:1";
  const args = (authority: string, ...more: readonly string[]): readonly string[] => {
    const upstreams = ["--upstream", `http://${authority}`, "--upstream", missing];
    const services = ["--service", `http://${authority}=greenhouse.*`, "--service", `${missing}=missing.*`];
    return [...upstreams, ...services, "--reflection", ...more];
  };
  const degraded = [`upstream ${missing}`];

  test.each([
    { option: [], ready: { status: 200, body: { status: "ready", degraded } } },
    { option: ["--require-all"], ready: { status: 503, body: { status: "not ready", obstacles: degraded } } },
  ])("with the flags $option leads to status $ready.status from /readyz", async ({ option, ready }) => {
    await using upstream = await startUpstream();
    await using running = proxy(...args(upstream.authority, "--admin-port", "0", ...option));
    const url = await running.serving;
    expect([(await get(`${url}/sensors/4/reading`)).status, (await get(`${url}/nothing`)).status]).toEqual([200, 503]);
    const admin = await running.url(/^health and metrics at (\S+)/);
    const { status, body } = await get(`${admin}/readyz`);
    expect({ status, body: JSON.parse(body) as unknown }).toEqual(ready);
    expect((await get(`${admin}/metrics`)).body).toContain(`gateway_upstream_connections{upstream="${missing}"} 0`);
    expect(running.errors[0]).toMatch(
      /^serving without http:\/\/127\.0\.0\.1:1: 127\.0\.0\.1:1: server reflection failed: \[unavailable\] cannot connect/,
    );
    // The upstream is retried, and its failure is logged once in ten seconds.
    await expect.poll(() => running.errors.length).toBe(2);
    await pause(2_500);
    expect(running.errors[1]).toMatch(/^cannot reload the descriptors: 127\.0\.0\.1:1: server reflection failed/);
    expect(running.errors).toHaveLength(2);
  });

  test("makes --check print the other upstream's services and exit with 1", async () => {
    await using upstream = await startUpstream();
    const { exitCode, printed, errors } = await run(...args(upstream.authority, "--check"));
    expect([exitCode, printed]).toEqual([1, expect.stringContaining("greenhouse.v1.GreenhouseService.GetReading")]);
    expect(errors).toContain(`serving without ${missing}: `);
  });
});

test("--check prints the routes, or the reason why none can be served", async () => {
  await using upstream = await startUpstream();
  const args = ["--upstream", `http://${upstream.authority}`, "--reflection", "--check", "--admin-port", "0"];
  expect(await run(...args)).toEqual({
    exitCode: 0,
    printed: `The proxy would serve:
  greenhouse.v1.GreenhouseService

REST routes:
  greenhouse.v1.GreenhouseService.GetReading: GET /sensors/{sensor}/reading
  greenhouse.v1.GreenhouseService.WaterBed: POST /beds/{bed}:water

Timeouts of unary calls without a deadline: REST 15000 ms, others none.`,
    errors: "",
  });
  for (const [text, more] of [
    ["REST none, others none.", ["--timeout-ms", "0"]],
    ["REST 5000 ms, others 5000 ms.", ["--timeout-ms", "5000", "--timeout-max-ms", "9000"]],
    ["REST 9000 ms, others 9000 ms.", ["--timeout-max-ms", "9000"]],
    ["REST 9000 ms, others 9000 ms.", ["--timeout-ms", "20000", "--timeout-max-ms", "9000"]],
  ] as const)
    expect((await run(...args, ...more)).printed.split("\n").at(-1)).toContain(text);
  const checking = proxy(...args);
  await within(checking.done, "the command");
  // Without listeners, a signal would terminate the process with an exit code other than 0.
  expect(checking.signals).toEqual([]);
  const wrong = write("wrong.yaml", `rules:\n- selector: ${GreenhouseService.typeName}.GetReading\n  get: /{nope}\n`);
  const { exitCode, errors } = await run(...args, "--rules", wrong);
  expect([exitCode, errors]).toEqual([1, expect.stringContaining("cannot start the proxy: invalid HTTP rules:\n")]);
});

describe("protoport serve", () => {
  const set = write("set.binpb", descriptorSetOf(file_orders_v1_orders));
  const local = ["--upstream", "http://127.0.0.1:1"];
  test.each<{ args: readonly string[]; message: string; exitCode?: number }>(
    // oxfmt-ignore
    [
      { args: [], message: "--upstream or --config is missing\nTry 'protoport serve --help'." },
      { args: ["x"], message: "usage: protoport serve [--config FILE]" },
      { args: ["--nope"], message: 'unknown flag "--nope" of "serve"' },
      { args: ["--prot", "1"], message: 'unknown flag "--prot" of "serve", did you mean "--port"?' },
      { args: ["--porrt", "1"], message: 'unknown flag "--porrt" of "serve", did you mean "--port"?' },
      { args: ["--upstream", "b", "--descriptors", set],
        message: "--upstream is not valid: an upstream address must be a URL" },
      ...(
        [
          ["--timeout-ms", 0],
          ["--timeout-max-ms", 1],
        ] as const
      ).map(([option, least]) => ({ args: [...local, "--descriptors", set, option, "86400001"],
        message: `${option} must be between ${least} and 86400000, got "86400001"`,
      })),
      { args: [...local, "--descriptors", set, "--admin-port", "65536"],
        message: "--admin-port must be between 0 and 65535" },
      { args: ["--upstream", "https://unix:1", "--descriptors", set, "--upstream-tls-ca", "/none"],
        message: "cannot read /none: ENOENT" },
      { args: [...local, "--descriptors", set, "--rest", "strict"], message: "--rest must be one of lenient, " },
      { args: [...local, "--descriptors", set, "--rest-profile", "loose"],
        message: '--rest-profile must be one of strict, google, grpc-gateway, envoy, a2a, got "loose"' },
      { args: [...local, "--descriptors", set, "--rules", "/none"], message: "cannot read /none: ENOENT" },
      ...[[], ["--check", "--wait"]].map((more) => ({ args: [...local, "--descriptors", "/none", ...more],
        message: "cannot start the proxy: --descriptors requires a readable file: ENOENT",
        exitCode: 1,
      })),
      { args: [...local, "--descriptors", "/dev/zero"],
        message: "--descriptors requires a readable file: /dev/zero is not a regular file",
        exitCode: 1 },
      ...["secret", ": secret", "a b: secret", "a: sec\nret"].map((field) => ({ args: [...local, "--reflection", "--reflect-header", field],
        message: "--reflect-header must be a name, a colon and a value",
      })),
      { args: [...local, "--reflection"], message: "server reflection failed: [unavailable] cannot connect",
        exitCode: 1 },
    ],
  )("with $args reports the error and exits with 1 or 2", async ({ args, message, exitCode = 2 }) => {
    const result = await run(...args);
    expect(result).toMatchObject({ exitCode, printed: "" });
    expect(result.errors).toContain(message);
  });

  test("exits with 1 and a message if the port is in use", async () => {
    await using other = await startUpstream();
    const port = String(other.address.port);
    const result = await run(...local, "--descriptors", set, "--port", port);
    expect(result).toMatchObject({ exitCode: 1, printed: "" });
    expect(result.errors).toContain(`EADDRINUSE: address already in use 127.0.0.1:${port}`);
  });
});

test.each([
  { signals: ["SIGTERM"], exitCode: 0, when: "after its calls" },
  { signals: ["SIGINT", "SIGTERM"], exitCode: 1, when: "immediately" },
] as const)("the proxy exits $when on $signals, even after SIGHUP", async ({ signals, exitCode }) => {
  const { received, release, admit } = holdCalls();
  await using upstream = await startUpstream(admit);
  const args = ["--port", "0", "--drain-delay-ms", "0", "--upstream", `http://${upstream.authority}`];
  const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const file = write("program.binpb", greenhouses);
  await using program = startNode([main, ...args, "--descriptors", file], folder.path);
  const [, url = ""] = await program.find(/^(\S+) serves/m);
  program.process.kill("SIGHUP");
  const response = get(`${url}/sensors/4/reading`).catch(() => undefined);
  await within(received, "the call");
  for (const signal of signals) program.process.kill(signal);
  if (exitCode === 0) release();
  expect([await program.end(), (await response)?.status]).toEqual([exitCode, exitCode === 0 ? 200 : undefined]);
  release();
});
