import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { collectGarbage, frameFlag, headersFrame, openHttp1, resetFrame } from "@protoport/testing";
// oxfmt-ignore
import { descriptorSetOf, grpcHead, grpcResponse, OrderService, respondWatered, type ScriptedConnection,
  serviceWithRoutes, startGreenhouse, startProxy, startScriptedServer, watered } from "@protoport/testing/proxy";
// oxfmt-ignore
import { createProxy, type ProxyGateway, type ProxyOptions, type MethodSettings, createUpstream
} from "../../../../src/create-proxy.ts";
import type { DescMethod } from "@bufbuild/protobuf";
import { createBearerAuth } from "../../../../../auth/src/index.ts";

// Calls that began before `reconfigure` has replaced their upstream.

const head = "POST /beds/7:water HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n";
const ok = (connection: ScriptedConnection, id: number): void => connection.send(...grpcResponse(id, watered));
const unavailable = headersFrame(1, [...grpcHead, ["grpc-status", "14"]], frameFlag.endStream);
const backoff = { initialBackoffMs: 30, maxBackoffMs: 30, backoffMultiplier: 1 };
const retry = { maxAttempts: 2, ...backoff, retryableCodes: [Code.Unavailable] };

test.each<[name: string, body: string, first: "now" | "after", send: (connection: ScriptedConnection) => void]>([
  ["in flight", "{}", "after", (connection) => ok(connection, 1)],
  ["in its retry backoff", "{}", "now", (connection) => connection.send(unavailable)],
  ["that fails after reconfigure", "{}", "after", (connection) => connection.send(unavailable)],
  ["that is refused after reconfigure", "{}", "after", (connection) => connection.send(resetFrame(1, 7))],
  ["with an incomplete body", "{", "now", (connection) => ok(connection, 1)],
])("reconfigure lets a call %s finish at the previous upstream", async (_name, body, first, send) => {
  const received = Promise.withResolvers<ScriptedConnection>();
  await using old = await startScriptedServer({
    request: (connection, id) => {
      if (connection.index + connection.requests > 1) return ok(connection, id);
      received.resolve(connection);
      if (first === "now") send(connection);
    },
  });
  await using next = await startScriptedServer(respondWatered);
  await using proxy = await startProxy(old.baseUrl, [GreenhouseService.file], { upstreamOptions: { retry } });
  using connection = await openHttp1(proxy.address);
  connection.write(head + body);
  if (body === "{}") await received.promise;
  else await expect.poll(() => proxy.proxy.load.requests.http1).toBe(1);
  const descriptors = descriptorSetOf(GreenhouseService.file);
  await proxy.proxy.reconfigure({ upstreams: [{ upstream: next.baseUrl, descriptors }] });
  connection.write("{}".slice(body.length));
  if (first === "after") send(await received.promise);
  expect([(await connection.readResponse("POST")).httpStatus, next.requests]).toEqual([200, 0]);
  connection.write(`${head}{}`);
  expect([(await connection.readResponse("POST")).httpStatus, next.requests]).toEqual([200, 1]);
  await expect.poll(() => old.open).toBe(0);
});

const offered = (name: string): Uint8Array => descriptorSetOf(serviceWithRoutes("a.A", { [name]: [] }).file);

test("reconfigure keeps the descriptors of a concurrent reload", async () => {
  const upstream = "http://127.0.0.1:1";
  let current = offered("Old");
  const proxy = await createProxy({ upstreams: [{ upstream, descriptors: { read: () => Promise.resolve(current) } }] });
  const read = async (): Promise<Uint8Array> => {
    current = offered("New");
    await proxy.reload();
    throw new ConnectError("no connection", Code.Unavailable);
  };
  await proxy.reconfigure({ upstreams: [{ upstream, descriptors: { read } }] });
  expect(proxy.services.flatMap(({ methods }) => methods.map(({ name }) => name))).toEqual(["New"]);
  await proxy.close();
});

/** Returns options whose descriptors, with a service that has this RPC, are read when the returned promise resolves. */
function delayed(name: string): { options: ProxyOptions; started: Promise<void>; read: () => void } {
  const gate = Promise.withResolvers<Uint8Array>();
  const start = Promise.withResolvers<void>();
  const read = (): Promise<Uint8Array> => {
    start.resolve();
    return gate.promise;
  };
  return {
    options: { upstreams: [{ upstream: "http://127.0.0.1:2", descriptors: { read } }] },
    started: start.promise,
    read: () => gate.resolve(offered(name)),
  };
}

const namesOf = ({ services }: Pick<ProxyGateway, "services">): readonly string[] =>
  services.flatMap(({ methods }) => methods.map(({ name }) => name));

test("reconfigure discards options that `accept` rejects, and applies the next options", async () => {
  const sourceOf = (name: string) => {
    let watches = 0;
    const watch = () => {
      watches++;
      return () => void watches--;
    };
    return { read: () => Promise.resolve(offered(name)), watch, watched: () => watches };
  };
  const sources = ["Start", "First", "Second", "Third"].map(sourceOf);
  const [start, first, second, third] = sources.map((descriptors) => ({
    upstreams: [{ upstream: "http://127.0.0.1:1", descriptors }],
  }));
  if (!start || !first || !second || !third) throw new Error("no source was created");
  const proxy = await createProxy(start);
  for (const [options, name] of [
    [first, "First"],
    [second, "Second"],
  ] as const) {
    const accepting = proxy.reconfigure(options, ({ services }) => {
      throw new RangeError(`refused ${namesOf({ services }).join()}`);
    });
    await expect(accepting).rejects.toThrow(new RangeError(`refused ${name}`));
    expect(namesOf(proxy)).toEqual(["Start"]);
  }
  expect(sources.map(({ watched }) => watched())).toEqual([1, 0, 0, 0]);
  await proxy.reconfigure(third, () => undefined);
  expect([namesOf(proxy), sources.map(({ watched }) => watched())]).toEqual([["Third"], [0, 0, 0, 1]]);
  await proxy.close();
});

test("running and queued reconfigure calls are rejected when the proxy closes", async () => {
  const upstreams = [{ upstream: "http://127.0.0.1:1", descriptors: offered("Start") }];
  const proxy = await createProxy({ upstreams });
  const [running, queued] = [delayed("Running"), delayed("Queued")];
  let hasRead = false;
  void queued.started.then(() => (hasRead = true));
  const outcomes = Promise.allSettled([proxy.reconfigure(running.options), proxy.reconfigure(queued.options)]);
  await running.started;
  await proxy.close();
  running.read();
  const closed = { status: "rejected", reason: { message: "the proxy is closed" } };
  expect([await outcomes, hasRead, namesOf(proxy)]).toMatchObject([[closed, closed], false, ["Start"]]);
});

/** Resolves once none of the objects is in memory. A new WeakRef keeps its target until the turn ends. */
async function expectReleased(objects: readonly WeakRef<object>[]): Promise<void> {
  const left = (): number => {
    collectGarbage();
    return objects.filter((each) => each.deref() !== undefined).length;
  };
  await expect.poll(left).toBe(0);
}

/** Calls an RPC, and returns a reference to the descriptor of a served service, which the generation in use holds. */
async function callAndReference(proxy: ProxyGateway): Promise<WeakRef<object>> {
  await (await proxy.fetch(new Request("http://proxy/sensors/1/reading"))).text();
  await (await proxy.fetch(new Request("http://proxy/upstream.v1.GreenhouseService/Unknown"))).text();
  const [service] = proxy.services;
  expect(service).toBeDefined();
  return new WeakRef(service ?? {});
}

test.each([
  { name: "given by address", isShared: false },
  { name: "given by createUpstream", isShared: true },
])("reconfigure with upstreams $name releases the previous descriptors and routes", async ({ isShared }) => {
  await using upstream = await startGreenhouse({ getReading: () => ({}) });
  const address = `http://127.0.0.1:${upstream.address.port}`;
  const shared = createUpstream({ addresses: address });
  const options = (): ProxyOptions => ({
    upstreams: [{ upstream: isShared ? shared : address, descriptors: descriptorSetOf(GreenhouseService.file) }],
    onReload: () => undefined,
  });
  const proxy = await createProxy(options());
  const replaced: WeakRef<object>[] = [];
  for (let turn = 0; turn < 3; turn++) {
    replaced.push(await callAndReference(proxy));
    await proxy.reconfigure(options());
  }
  await expectReleased(replaced);
  expect((await callAndReference(proxy)).deref()).toBeDefined();
  await proxy.close();
  await shared.close();
});

const { interceptor } = createBearerAuth({ verify: () => ({ kind: "unknown", reason: "" }) }, { realm: "greenhouse" });

function ownRetries(method: DescMethod): MethodSettings {
  const delays = { initialBackoffMs: 1, maxBackoffMs: 1, backoffMultiplier: 1 };
  return { retry: { maxAttempts: 2, retryableCodes: [14], ...delays, methods: (other) => other === method } };
}

test.each([
  { name: "each reload" },
  { name: "each reload after reconfigure", isReconfigured: true },
  { name: "each reload with a retry policy per method", methodSettings: ownRetries },
  { name: "each reload with an interceptor of createBearerAuth", interceptors: [interceptor] },
])("$name releases the previous descriptors and routes", async (given) => {
  const { isReconfigured = false, interceptors = [], methodSettings = () => undefined } = given;
  await using upstream = await startGreenhouse({ getReading: () => ({}) });
  const [some, more] = [[GreenhouseService.file], [GreenhouseService.file, OrderService.file]];
  let current = descriptorSetOf(...some);
  const url = `http://127.0.0.1:${upstream.address.port}`;
  const descriptors = { read: () => Promise.resolve(current) };
  const options: ProxyOptions = { upstreams: [{ upstream: url, descriptors, methodSettings }], interceptors };
  const proxy = await createProxy(options);
  if (isReconfigured) await proxy.reconfigure(options);
  const replaced: WeakRef<object>[] = [];
  for (const files of [more, some, more]) {
    replaced.push(await callAndReference(proxy));
    current = descriptorSetOf(...files);
    expect(await proxy.reload()).toMatchObject({ isChanged: true });
  }
  await expectReleased(replaced);
  await proxy.close();
});
