import { once } from "node:events";
import { createServer, request as requestHttp1, type Server } from "node:http";
import { connect } from "node:http2";
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createCertificate, createTempFolder, within } from "@protoport/testing";
import { expressConnectMiddleware, type ExpressConnectMiddleware } from "../../../src/express.ts";
import { fastifyConnectPlugin } from "../../../src/fastify.ts";
import { folders, greenhouse, pathOf, requireFrom } from "./frameworks.ts";

// Applications that close while calls are open, with handlers and clients that do not cooperate.

type Implementation = Partial<ServiceImpl<typeof GreenhouseService>>;
/** More than the client's and the sockets' buffers hold. */
const reading = { sensor: "x".repeat(1_000_000) };

async function* watchReadings(): AsyncGenerator<{ sensor: string }> {
  yield { sensor: "first" };
  await new Promise(() => {});
}

const handlers: Readonly<Record<string, Implementation["watchReadings"]>> = {
  "obeys its signal": async function* readings(_request: object, { signal }: HandlerContext) {
    for (;;) {
      signal.throwIfAborted();
      yield reading;
      await setTimeout(1);
    }
  },
  "ignores its signal": async function* readings() {
    for (;;) {
      yield reading;
      await setTimeout(1);
    }
  },
  "never sends a second message": watchReadings,
};

type Application = { readonly port: number; close(this: void): Promise<unknown> };

interface Framework {
  readonly name: string;
  readonly isHttp2: boolean;
  listen(this: void, implementation: Implementation): Promise<Application>;
}

const frameworks: readonly Framework[] = (["oldest", "newest"] as const).flatMap((version) => [
  {
    name: `the ${version} Express`,
    isHttp2: false,
    async listen(implementation) {
      const middleware = expressConnectMiddleware({ ...greenhouse(implementation), ...options });
      const app: ((...exchange: object[]) => void) & { use(each: ExpressConnectMiddleware): void } = requireFrom(
        folders[version],
      )("express")();
      app.use(middleware);
      const server = createServer(app).listen(0, "127.0.0.1");
      await once(server, "listening");
      return {
        port: portOf(server),
        close: () => {
          middleware.close();
          return once(server.close(), "close");
        },
      };
    },
  },
  ...[false, true].map((isHttp2) => ({
    name: `the ${version} Fastify over HTTP/${isHttp2 ? "2" : "1.1"}`,
    isHttp2,
    async listen(implementation: Implementation): Promise<Application> {
      const app = requireFrom(folders[version])("fastify").fastify(isHttp2 ? { http2: true } : {});
      app.register(fastifyConnectPlugin, { ...greenhouse(implementation), ...options });
      app.register(fastifyConnectPlugin, { ...greenhouse({}), prefix: "/other" });
      await app.listen({ port: 0, host: "127.0.0.1" });
      return { port: portOf(app.server), close: () => app.close() };
    },
  })),
]);

const options = { closeTimeoutMs: 50, onFault: () => undefined };

function portOf(server: Pick<Server, "address">): number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server on a port has this address.
  return (server.address() as AddressInfo).port;
}

const connectTo = (place: number | string): Socket =>
  typeof place === "number" ? connectTcp(place, "127.0.0.1") : connectTcp(place);

/** Opens a stream, and resolves when its first bytes have arrived. Reads the other bytes only if `reads`. */
async function watch(place: number | string | Socket, isHttp2: boolean, reads: boolean): Promise<Socket> {
  const socket = (typeof place === "object" ? place : connectTo(place)).on("error", () => undefined);
  const headers = { "content-type": "application/connect+json" };
  const path = pathOf("WatchReadings");
  const body = Buffer.from("\0\0\0\0\u{2}{}");
  if (isHttp2) {
    const session = connect("http://127.0.0.1", { createConnection: () => socket }).on("error", () => undefined);
    const stream = session.request({ ":method": "POST", ":path": path, ...headers }).on("error", () => undefined);
    stream.end(body);
    await once(stream, "data");
    if (reads) stream.resume();
    else stream.pause();
  } else {
    const call = requestHttp1({ createConnection: () => socket, method: "POST", path, headers });
    call.on("error", () => undefined).end(body);
    const [incoming] = await once(call, "response");
    incoming.on("error", () => undefined);
    await once(incoming, "data");
    if (reads) incoming.resume();
    else incoming.pause();
  }
  if (!reads) socket.pause();
  return socket;
}

describe.each(frameworks)("$name", ({ isHttp2, listen }) => {
  describe.each(Object.entries(handlers))("with a handler that %s", (_name, handler) => {
    test.concurrent.each([
      { name: "reads", reads: true },
      { name: "does not read", reads: false },
    ])("closes although a client $name an open stream", async ({ reads }) => {
      const { port, close } = await listen(handler === undefined ? {} : { watchReadings: handler });
      const client = await watch(port, isHttp2, reads);
      await within(close(), "the end of close").finally(() => client.destroy());
    });
  });
});

describe.each(frameworks.filter(({ isHttp2 }) => !isHttp2))("$name", ({ listen }) => {
  test("sends the response of a call that ends before closeTimeoutMs", async () => {
    const running = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const { port, close } = await listen({
      async getReading({ sensor }) {
        running.resolve();
        await end.promise;
        return { sensor };
      },
    });
    const response = fetch(`http://127.0.0.1:${port}/sensors/palm/reading`);
    await running.promise;
    const closed = close();
    end.resolve();
    expect(await (await response).json()).toEqual({ sensor: "palm" });
    // The client keeps its connection.
    await within(closed, "the end of close");
  });
});

describe.each(["oldest", "newest"] as const)("the %s Fastify over HTTP/2", (version) => {
  test("closes on a Unix socket no connection of a client without calls", async () => {
    using folder = createTempFolder();
    const path = folder.file("socket");
    const app = requireFrom(folders[version])("fastify").fastify({ http2: true });
    const waiting = Promise.withResolvers<void>();
    const end = Promise.withResolvers<string>();
    app.register(fastifyConnectPlugin, { ...greenhouse({ watchReadings }), ...options });
    app.get("/page", () => {
      waiting.resolve();
      return end.promise;
    });
    await app.listen({ path });
    const other = connect("http://localhost", { createConnection: () => connectTcp(path) });
    const page = other.request({ ":path": "/page" });
    const response = once(page, "response");
    await waiting.promise;
    const opened = once(app.server, "session");
    const client = await watch(path, true, false);
    const [session] = await opened;
    const sessionClosed = once(session, "close");
    const closed = app.close();
    await within(sessionClosed, "the end of the call's session");
    end.resolve("a page");
    const [{ ":status": httpStatus }] = await within(response, "the page");
    expect(httpStatus).toBe(200);
    page.resume();
    await within(closed, "the end of close");
    client.destroy();
  });

  test("closes with TLS the connection of an open call, and no other", async () => {
    const { key, cert } = createCertificate("localhost");
    const app = requireFrom(folders[version])("fastify").fastify({ http2: true, https: { key, cert } });
    app.register(fastifyConnectPlugin, { ...greenhouse({ watchReadings }), ...options });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const client = connectTo(portOf(app.server));
    await once(app.server, "connection");
    // The other client connects before the first one's handshake.
    const other = connectTo(portOf(app.server));
    const [otherSocket] = await once(app.server, "connection");
    const opened = once(app.server, "session");
    await watch(connectTls({ socket: client, ALPNProtocols: ["h2"], rejectUnauthorized: false }), true, false);
    client.pause();
    const [session] = await opened;
    const sessionClosed = once(session, "close");
    const closed = app.close();
    await within(sessionClosed, "the end of the call's session");
    expect(otherSocket.destroyed).toBe(false);
    other.destroy();
    await within(closed, "the end of close");
    client.destroy();
  });
});
