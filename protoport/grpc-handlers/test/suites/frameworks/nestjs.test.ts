import { createClient, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { freePort } from "@protoport/testing/process";
import { readServices } from "../../../src/nestjs.ts";
import { loadGarden } from "../../garden.ts";
import { callGarden, type ClientCall } from "../../grpc-js-client.ts";
import { type NestGarden, nestVersions } from "./nest-garden.ts";

type Caller = (url: string, treeId: number, key: string) => Promise<unknown>;

const rest: Caller = async (url, treeId, key) => {
  const response = await fetch(`${url}/v1/beds/1/trees/${treeId}`, { headers: { "x-key": key, connection: "close" } });
  const body: Record<string, unknown> = JSON.parse(await response.text());
  return response.ok ? body["speciesName"] : [body["code"], body["message"]];
};

function connect(createTransport: (baseUrl: string) => Transport): Caller {
  return async (url, treeId, key) => {
    const [service] = readServices(loadGarden());
    if (service === undefined) throw new TypeError("no service");
    const client: Readonly<Record<string, unknown>> = createClient(service, createTransport(url));
    const { getTree } = client;
    if (typeof getTree !== "function") throw new TypeError("no method");
    try {
      const request = { bedName: "beds/1", treeId: BigInt(treeId) };
      return Reflect.get(await getTree(request, { headers: { "x-key": key } }), "speciesName");
    } catch (error) {
      const { code, rawMessage } = ConnectError.from(error);
      return [code, rawMessage];
    }
  };
}

const nodeOptions = { agent: false };
const overHttp1: Readonly<Record<string, Caller>> = {
  REST: rest,
  Connect: connect((baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions })),
  "gRPC-Web": connect((baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1", nodeOptions })),
};
const protocols: Readonly<Record<string, Caller>> = {
  ...overHttp1,
  gRPC: connect((baseUrl) => createGrpcTransport({ baseUrl })),
};

// oxfmt-ignore
const calls: readonly {
  readonly name: string;
  readonly treeId: number;
  readonly key?: string;
  readonly outcome: unknown;
  readonly order: readonly string[];
}[] = [
  { name: "guards, interceptors and pipes run before a handler", treeId: 7, outcome: "beds/1/piped",
    order: ["guard", "interceptor", "pipe", "handler"] },
  { name: "a call that a guard refuses is PERMISSION_DENIED", treeId: 7, key: "closed",
    outcome: [status.PERMISSION_DENIED, "Forbidden resource"], order: ["guard"] },
  { name: "an exception filter sets the status", treeId: 404, outcome: [status.NOT_FOUND, "no such tree"],
    order: ["guard", "interceptor", "pipe", "handler", "filter"] },
  { name: "an RpcException with a string is UNKNOWN with this message", treeId: 400,
    outcome: [status.UNKNOWN, "not a tree"], order: ["guard", "interceptor", "pipe", "handler"] },
  { name: "another error is UNKNOWN without its message", treeId: 500,
    outcome: [status.UNKNOWN, "Internal server error"], order: ["guard", "interceptor", "pipe", "handler"] },
];

describe.each(nestVersions)("Nest, %s", (_version, { create, startOwn }) => {
  async function check({ order }: NestGarden, url: string, callers: Readonly<Record<string, Caller>>): Promise<void> {
    const seen: string[] = [...order];
    for (const [protocol, caller] of Object.entries(callers)) {
      for (const { name, treeId, key = "open", outcome, order: wanted } of calls) {
        const got = await caller(url, treeId, key);
        expect([protocol, name, got, order.slice(seen.length)]).toEqual([protocol, name, outcome, wanted]);
        seen.push(...wanted);
      }
    }
  }

  test("guards, pipes, interceptors and filters run on a separate port", async () => {
    const port = await freePort();
    const garden = await create({ listen: { host: "127.0.0.1", port } });
    await garden.app.startAllMicroservices();
    await check(garden, `http://127.0.0.1:${port}`, protocols);
  });

  test("guards, pipes, interceptors and filters run on the application's port", async () => {
    const garden = await create();
    garden.strategy.mount(garden.app);
    await garden.app.startAllMicroservices();
    await garden.app.listen(0, "127.0.0.1");
    await check(garden, await garden.app.getUrl(), overHttp1);
  });

  const metadata = [["x-key", "open"]] as const;
  const requests = [{ treeId: 1 }, { treeId: 2 }];
  const streams: readonly (ClientCall & { readonly name: string })[] = [
    { name: "a unary call", method: "GetTree", requests: [{ bedName: "beds/1", treeId: 7 }], metadata },
    { name: "a server stream", method: "ListTrees", requests: [{ pageSize: 3 }], metadata },
    { name: "a server stream whose handler throws", method: "ListTrees", requests: [{ pageSize: 0 }], metadata },
    { name: "a client stream", method: "AddTrees", requests, metadata },
    { name: "a bidirectional stream", method: "TradeTrees", requests, metadata },
    { name: "an exception that no filter catches", method: "GetTree", requests: [{ treeId: 500 }], metadata },
  ];

  test("controllers send the same gRPC responses as with Nest's own transport", async () => {
    const own = await startOwn();
    const port = await freePort();
    const { app } = await create({ listen: { host: "127.0.0.1", port } });
    await app.startAllMicroservices();
    for (const { name, ...call } of streams) {
      const { details, ...wanted } = await callGarden(own, call);
      // grpc-js sends the details "OK" too.
      const outcome = { ...wanted, details: details.replace(/^OK$/, "") };
      expect([name, await callGarden(port, call)]).toEqual([name, outcome]);
    }
    expect((await callGarden(port, { method: "AddTrees", requests, metadata })).messages).toEqual([{ treeCount: 2 }]);
    const refused = await callGarden(port, { method: "TradeTrees", requests });
    expect(refused).toMatchObject({ code: status.PERMISSION_DENIED, messages: [] });
  });

  test.each(["AddTrees", "TradeTrees"] as const)(
    "a controller receives all %s messages that arrive while a guard waits",
    async (method) => {
      const port = await freePort();
      const { app } = await create({ listen: { host: "127.0.0.1", port } });
      await app.startAllMicroservices();
      const slow = [...metadata, ["x-slow", "1"]] as const;
      const { code, messages } = await callGarden(port, { method, requests, metadata: slow });
      const trees = [{ treeId: "11" }, { treeId: "12" }].map((tree) => expect.objectContaining(tree));
      expect([code, messages]).toEqual([status.OK, method === "AddTrees" ? [{ treeCount: 2 }] : trees]);
    },
  );

  test.each(["AddTrees", "TradeTrees"] as const)("%s times out if a guard never resolves", async (method) => {
    let held = 0;
    const countRequests: ServerInterceptor = (_definition, call) =>
      new ServerInterceptingCall(call, {
        start: (next) =>
          next({
            onReceiveMessage: (message, pass) => {
              held += 1;
              pass(message);
            },
          }),
      });
    const port = await freePort();
    const { app, strategy } = await create({ listen: { host: "127.0.0.1", port }, interceptors: [countRequests] });
    await app.startAllMicroservices();
    const response = await fetch(`http://127.0.0.1:${port}/garden.v1.Garden/${method}`, {
      method: "POST",
      body: Buffer.concat(Array.from({ length: 20 }, () => Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]))),
      headers: { "content-type": "application/connect+json", "connect-timeout-ms": "200", "x-never": "1" },
    });
    expect(await response.text()).toContain('"code":"deadline_exceeded"');
    expect(held).toBe(1);
    await expect.poll(() => strategy.unwrap().load.requests.http1).toBe(0);
  });

  test("listen is refused without startAllMicroservices after mount", async () => {
    const { app, strategy } = await create();
    strategy.mount(app);
    const problem = "the gateway has not started: call app.startAllMicroservices() before app.listen()";
    await expect(app.listen(0, "127.0.0.1")).rejects.toThrow(problem);
    expect(() => strategy.unwrap()).toThrow(problem);
    await app.startAllMicroservices();
    await app.listen(0, "127.0.0.1");
    expect(await rest(await app.getUrl(), 7, "open")).toBe("beds/1/piped");
  });

  test("mount is refused if called after app.init in the program", async () => {
    const { app, strategy } = await create();
    await app.init();
    expect(() => strategy.mount(app)).toThrow("call strategy.mount(app) before");
  });
});
