import { once } from "node:events";
import { connect } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { FieldDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createSigningKey, createTempFolder, startIdentityProvider, within } from "@protoport/testing/process";
import { type Certificate, createCertificate, frameFlag, frameType, headersFrame } from "@protoport/testing/http";
// oxfmt-ignore
import { descriptorSetOf, grpcHead, grpcResponse, ProxyCommand, respondWatered, runProxyCommand, serviceWithRoutes,
  startReflectedUpstream, startScriptedServer, stringField, watered } from "@protoport/testing/proxy";
import { readSamples } from "../../../testing/src/telemetry/samples.ts";
import { toUrl } from "../../src/command/proxy-server.ts";

const water = async (baseUrl: string): Promise<number> =>
  (await fetch(`${baseUrl}/beds/7:water`, { method: "POST" })).status;
const greenhouse = descriptorSetOf(GreenhouseService.file);

/** Returns a folder with descriptors, and a function that writes settings for one upstream and returns the flags. */
function createSettings() {
  const folder = createTempFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const descriptors = folder.write("greenhouse.binpb", greenhouse);
  const configure = (address: string, settings: object = {}, upstream: object = {}): readonly string[] => {
    const upstreams = [{ addresses: [address], descriptors, services: ["greenhouse.*"], ...upstream }];
    const common = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, upstreams };
    return ["--config", folder.write("proxy.yaml", JSON.stringify({ ...common, ...settings }))];
  };
  return { folder, configure };
}

const flags = ["--port", "0", "--drain-delay-ms", "0", "--drain-timeout-ms", "0"];

/** Returns the values of a metric, one for each upstream or file. */
async function metric(command: ProxyCommand, name: string): Promise<readonly number[]> {
  const adminUrl = await command.url(/^health and metrics at (\S+)/);
  const samples = readSamples(await (await fetch(`${adminUrl}/metrics`)).text());
  return samples.filter((sample) => sample.name === name).map(({ value }) => value);
}

async function reloadConfiguration(command: ProxyCommand): Promise<void> {
  command.hangUp();
  expect(await command.waitForLine(/^configuration reloaded$/)).toBeDefined();
}

test("a reload with a refused configuration keeps the upstream connections open", async () => {
  await using server = await startScriptedServer(respondWatered);
  const { configure } = createSettings();
  await using command = new ProxyCommand(configure(server.baseUrl));
  const baseUrl = await command.serving;
  expect(await water(baseUrl)).toBe(200);
  configure(server.baseUrl, {}, { services: ["other.*"] });
  command.hangUp();
  expect(await command.waitForLine(/cannot reload the configuration/)).toBeDefined();
  expect([await water(baseUrl), server.connections]).toEqual([200, 1]);
});

test("a reload with a refused configuration closes the connections that it opened", async () => {
  await using old = await startScriptedServer(respondWatered);
  const unimplemented = [...grpcHead, ["grpc-status", "12"]] as const;
  await using next = await startScriptedServer({
    frame: (connection, { type, streamId }) => {
      if (type === frameType.headers) connection.send(headersFrame(streamId, unimplemented, frameFlag.endStream));
    },
  });
  const { configure } = createSettings();
  await using command = new ProxyCommand(configure(old.baseUrl));
  const baseUrl = await command.serving;
  configure(next.baseUrl, {}, { descriptors: "reflection" });
  command.hangUp();
  expect(await command.waitForLine(/cannot reload the configuration/)).toBeDefined();
  expect(await water(baseUrl)).toBe(200);
  await expect.poll(() => [next.connections, next.open]).toEqual([1, 0]);
});

test("a misspelled --service fails with the services of the reflection", async () => {
  const services = ["orders.v1.Orders", "shop.v1.Shop"].map((name) => serviceWithRoutes(name, {}));
  await using upstream = await startReflectedUpstream(...services);
  const args = ["--upstream", upstream.address, "--reflection", "--check"];
  const { exitCode, errors } = await runProxyCommand(...args, "--service", "orders.v1.Order");
  const reason = "they have no service to proxy; orders.v1.Orders is not selected; shop.v1.Shop is not selected";
  expect([exitCode, errors]).toEqual([1, expect.stringMatching(new RegExp(`${reason}$`))]);
});

test("a call in flight finishes after a reload replaces its upstream", async () => {
  const received = Promise.withResolvers<() => void>();
  await using old = await startScriptedServer({
    request: (connection, id) => received.resolve(() => connection.send(...grpcResponse(id, watered))),
  });
  await using next = await startScriptedServer(respondWatered);
  const { configure } = createSettings();
  await using command = new ProxyCommand(configure(old.baseUrl, { drain: { delayMs: 0, timeoutMs: 10_000 } }));
  const baseUrl = await command.serving;
  const call = water(baseUrl);
  const respond = await within(received.promise, "the call at the old upstream");
  configure(next.baseUrl);
  await reloadConfiguration(command);
  expect(await water(baseUrl)).toBe(200);
  respond();
  expect([await call, next.requests]).toEqual([200, 1]);
});

test("reloaded descriptors with a new field renew the OpenAPI document", async () => {
  await using server = await startScriptedServer(respondWatered);
  const { folder } = createSettings();
  const upstream = ["--upstream", server.baseUrl, "--descriptors", folder.file("greenhouse.binpb")];
  await using command = new ProxyCommand([...flags, ...upstream]);
  const baseUrl = await command.serving;
  const readDocument = async (): Promise<string> => await (await fetch(`${baseUrl}/openapi.json`)).text();
  expect(await readDocument()).not.toContain('"unit"');
  const proto = structuredClone(GreenhouseService.file.proto);
  proto.messageType[0]?.field.push(create(FieldDescriptorProtoSchema, stringField("unit", 9)));
  folder.write("greenhouse.binpb", descriptorSetOf({ ...GreenhouseService.file, proto }));
  command.hangUp();
  expect(await command.waitForLine(/^descriptors reloaded$/)).toBeDefined();
  expect(await readDocument()).toContain('"unit"');
});

test("a configuration reload stops logging a solved problem of the descriptors", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  await using server = await startScriptedServer(respondWatered);
  const { folder, configure } = createSettings();
  await using command = new ProxyCommand(configure(server.baseUrl));
  await command.serving;
  folder.write("greenhouse.binpb", Buffer.from("invalid"));
  command.hangUp();
  expect(await command.waitForLine(/^cannot reload the descriptors/)).toBeDefined();
  folder.write("greenhouse.binpb", greenhouse);
  await reloadConfiguration(command);
  const { length } = command.errors;
  vi.advanceTimersByTime(600_000);
  expect(command.errors.slice(length)).toEqual([]);
});

test("a request that waits for introspection is served after a reload", async () => {
  await using server = await startScriptedServer(respondWatered);
  using provider = await startIdentityProvider(await createSigningKey("ES256", "key"));
  const received = Promise.withResolvers<() => void>();
  provider.respond = (_, response) => received.resolve(() => void response.end('{"active":true,"sub":"ada"}'));
  const { folder, configure } = createSettings();
  const clientSecretFile = folder.write("secret", "secret");
  const introspection = { url: `${provider.issuer}/introspect`, clientId: "proxy", clientSecretFile };
  const access = { authentication: { introspection }, rateLimit: { perAddress: 100 } };
  const drain = { delayMs: 0, timeoutMs: 1_000 };
  await using command = new ProxyCommand(configure(server.baseUrl, { ...access, drain }));
  const baseUrl = await command.serving;
  const call = fetch(`${baseUrl}/beds/7:water`, { method: "POST", headers: { authorization: "Bearer opaque" } });
  const respond = await within(received.promise, "the request for introspection");
  configure(server.baseUrl, { ...access, rateLimit: { perAddress: 200 } });
  await reloadConfiguration(command);
  respond();
  expect((await call).status).toBe(200);
});

test("SIGHUP reloads the descriptors even if the configuration file is invalid", async () => {
  const routes = { Get: ["GET /v1/orders/{id}"] };
  await using upstream = await startReflectedUpstream(serviceWithRoutes("orders.v1.Orders", routes));
  const { folder, configure } = createSettings();
  const reflected = { descriptors: "reflection", services: ["orders.*"] };
  await using command = new ProxyCommand(configure(upstream.address, {}, reflected));
  await command.serving;
  upstream.offer(serviceWithRoutes("orders.v1.Orders", { ...routes, List: ["GET /v1/orders"] }));
  folder.write("proxy.yaml", "");
  command.hangUp();
  expect(await command.waitForLine(/^descriptors reloaded\n {2}\+ \/orders\.v1\.Orders\/List$/)).toBeDefined();
  expect(command.errors.join()).toContain("cannot reload the configuration");
});

test("an unreachable upstream keeps its descriptors when the configuration is reloaded", async () => {
  await using server = await startScriptedServer(respondWatered);
  const service = serviceWithRoutes("orders.v1.Orders", { Get: ["GET /v1/orders/{id}"] });
  await using orders = await startReflectedUpstream(service);
  const { folder, configure } = createSettings();
  const descriptors = folder.file("greenhouse.binpb");
  const first = { addresses: [server.baseUrl], descriptors, services: ["greenhouse.*"] };
  const second = { addresses: [orders.address], descriptors: "reflection", services: ["orders.*"] };
  await using command = new ProxyCommand(configure("", { upstreams: [first, second] }));
  const baseUrl = await command.serving;
  await orders.stop();
  configure("", { upstreams: [first, { ...second, connections: 2 }], docs: false });
  await reloadConfiguration(command);
  expect(command.errors.join()).toContain(`serving ${orders.address} by its previous descriptors: `);
  const statuses = ["/openapi.json", "/v1/orders/7"].map(async (path) => (await fetch(baseUrl + path)).status);
  expect([await water(baseUrl), ...(await Promise.all(statuses))]).toEqual([200, 404, 503]);
});

test("a reload with invalid descriptors is logged once, and keeps the previous descriptors", async () => {
  await using server = await startScriptedServer(respondWatered);
  const { folder } = createSettings();
  const upstream = ["--upstream", server.baseUrl, "--descriptors", folder.file("greenhouse.binpb")];
  await using command = new ProxyCommand([...flags, "--admin-port", "0", ...upstream]);
  const baseUrl = await command.serving;
  const read = (name: string): Promise<readonly number[]> => metric(command, `gateway_descriptors_reload_${name}`);
  const [startedAtS = Number.NaN] = await read("last_success_seconds");
  expect([await read("successful"), Math.abs(Date.now() / 1_000 - startedAtS) < 600]).toEqual([[1], true]);
  folder.write("greenhouse.binpb", "no descriptors");
  for (let reload = 0; reload < 3; reload++) {
    command.hangUp();
    await expect.poll(() => read("successful")).toEqual([0]);
    expect(await water(baseUrl)).toBe(200);
  }
  const adminUrl = await command.url(/^health and metrics at (\S+)/);
  expect([(await fetch(`${adminUrl}/readyz`)).status, await read("last_success_seconds")]).toEqual([200, [startedAtS]]);
  folder.write("greenhouse.binpb", greenhouse);
  command.hangUp();
  expect(await command.waitForLine(/^descriptors are readable again, unchanged$/)).toBeDefined();
  expect((await read("last_success_seconds"))[0]).toBeGreaterThan(startedAtS);
  const problem =
    /^cannot reload the descriptors: .*they are not a binary google\.protobuf\.FileDescriptorSet; the previous descriptors of these upstreams stay in use$/;
  expect(command.errors).toEqual([expect.stringMatching(problem)]);
});

test("an upstream's changes are reported while another one is unreachable", async () => {
  const orders = serviceWithRoutes("orders.v1.Orders", {});
  await using upstream = await startReflectedUpstream(orders);
  const upstreams = ["--upstream", "http://127.0.0.1:1", "--upstream", upstream.address, "--reflection"];
  const patterns = ["http://127.0.0.1:1=missing.*", `${upstream.address}=orders.*`, `${upstream.address}=shop.*`];
  const services = patterns.flatMap((pattern) => ["--service", pattern]);
  await using command = new ProxyCommand([...flags, ...upstreams, ...services]);
  await command.serving;
  upstream.offer(orders, serviceWithRoutes("shop.v1.Shop", { Get: [] }));
  command.hangUp();
  expect(await command.waitForLine(/^descriptors reloaded\n {2}\+ \/shop\.v1\.Shop\/Get$/)).toBeDefined();
  const problem = "127\\.0\\.0\\.1:1: .*; the previous descriptors of these upstreams stay in use";
  expect(await command.waitForLine(new RegExp(`^cannot reload the descriptors: ${problem}$`))).toBeDefined();
  expect(command.printed.join()).not.toContain("unchanged");
});

test("SIGHUP applies a renewed certificate, but no expired one", async () => {
  const { folder } = createSettings();
  const write = ({ cert, key }: Certificate): void => {
    folder.write("cert.pem", cert);
    folder.write("key.pem", key);
  };
  write(createCertificate("good"));
  const tls = ["--tls-cert", folder.file("cert.pem"), "--tls-key", folder.file("key.pem")];
  const upstream = ["--upstream", "http://127.0.0.1:1", "--descriptors", folder.file("greenhouse.binpb")];
  await using command = new ProxyCommand([...flags, "--admin-port", "0", ...tls, ...upstream]);
  const { port } = new URL(await command.serving);
  const served = async (): Promise<unknown> => {
    const socket = connect({ host: "127.0.0.1", port: Number(port), rejectUnauthorized: false });
    await within(once(socket, "secureConnect"), "a connection");
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return [CN, await metric(command, "gateway_file_reload_successful")];
  };
  write(createCertificate("expired", new Date(Date.now() - 3_600_000)));
  command.hangUp();
  expect(await command.waitForLine(/^cannot reload the certificate: .*the certificate expired at 20/)).toBeDefined();
  expect(await served()).toEqual(["good", [0]]);
  write(createCertificate("renewed"));
  command.hangUp();
  await expect.poll(served).toEqual(["renewed", [1]]);
});

test("an item of rest.services adds its options to rest.options", async () => {
  await using server = await startScriptedServer(respondWatered);
  const rest = { options: ["int64Numbers"], services: [{ name: "greenhouse.*", options: ["lenient"] }] };
  await using command = new ProxyCommand(createSettings().configure(server.baseUrl, { rest }));
  const response = await fetch(`${await command.serving}/beds/7:water?unknown=1`, { method: "POST" });
  expect(await response.text()).toMatch(/^\{"bed":7,/);
});

test.each<{ name: string; more: readonly string[]; route: string; message: string }>(
  // oxfmt-ignore
  [
    { name: "invalid rules of a file end", more: ["--rules", "rules.yaml"], route: "GET /v1/orders/{id}",
      message: "cannot start the proxy: invalid HTTP rules" },
    { name: "unknown services end", more: ["--service", "b.*"], route: "GET /v1/orders/{id}",
      message: "--service must match a service of the descriptors" },
    { name: "invalid annotations delay", more: [], route: "GET /v1/{none}",
      message: "waiting for descriptors: invalid" },
  ],
)("with --wait, $name the start", async ({ name, more, route, message }) => {
  using folder = createTempFolder();
  const { file } = serviceWithRoutes("orders.v1.Orders", { Get: [route] });
  const descriptors = folder.write("orders.binpb", descriptorSetOf(file));
  folder.write("rules.yaml", "http: { rules: [{ selector: orders.v1.Orders.Get, get: '/{none}' }] }");
  const args = more.map((arg) => (arg.endsWith(".yaml") ? folder.file(arg) : arg));
  const upstream = ["--upstream", "http://127.0.0.1:1", "--descriptors", descriptors];
  const command = new ProxyCommand(["--wait", "--port", "0", ...upstream, ...args]);
  expect(await command.waitForLine(new RegExp(`^${message}`))).toBeDefined();
  if (name.endsWith("delay")) await command[Symbol.asyncDispose]();
  else expect(await within(command.done, "the end of the command")).toBeGreaterThan(0);
});

test("a reload applies its tokens to a proxy that opens during the reload", async () => {
  await using server = await startScriptedServer(respondWatered);
  const { folder, configure } = createSettings();
  const [old, next] = ["the-revoked-token-2026", "the-current-token-2026"];
  const configureToken = (token: string): readonly string[] => {
    const tokens = [{ file: folder.write(token, token) }];
    const late = { descriptors: folder.file("late.binpb") };
    return configure(server.baseUrl, { wait: true, authentication: { tokens } }, late);
  };
  await using command = new ProxyCommand(configureToken(old));
  await command.waitForLine(/^waiting for descriptors/);
  configureToken(next);
  // The proxy finds the descriptors while it checks the new configuration.
  command.hangUp();
  folder.write("late.binpb", greenhouse);
  expect(await command.waitForLine(/^configuration reloaded$/)).toBeDefined();
  const statuses = [old, next].map(async (token) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${await command.serving}/beds/7:water`, { method: "POST", headers })).status;
  });
  expect(await Promise.all(statuses)).toEqual([401, 200]);
});

test.each([
  { address: "127.0.0.1", want: "http://127.0.0.1:8080" },
  { address: "::1", want: "http://[::1]:8080" },
])("toUrl returns $want for the address $address and port 8080", ({ address, want }) => {
  expect(toUrl("http", { address, port: 8080 })).toBe(want);
});
