import { once } from "node:events";
import { createServer } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { startOnLoopback } from "@protoport/testing/http";
import { expressConnectMiddleware } from "../../../src/express.ts";
import { folders, greenhouse, noteKey, pathOf, pluginFolder, requireFrom } from "./frameworks.ts";
import { type Application, type Ask, middlewares, noteOf, origin, surround } from "./usual-middleware.ts";

// Common Express middleware, used before and after the gateway, which is mounted in several ways.

type Express = { (): Application; Router(): Application };

const ways: Readonly<
  Record<
    string,
    { prefixes: readonly string[]; mount: (express: Express, app: Application, create: CreateGateway) => void }
  >
> = {
  "at the root": { prefixes: [""], mount: (_express, app, create) => app.use(create()) },
  "below a path": { prefixes: ["/api"], mount: (_express, app, create) => app.use("/api", create()) },
  twice: {
    prefixes: ["", "/b"],
    mount: (_express, app, create) => {
      app.use(create());
      app.use(create({ requestPathPrefix: "/b" }));
    },
  },
  "in a router": {
    prefixes: ["/c"],
    mount: (express, app, create) => {
      const router = express.Router();
      router.use(create());
      app.use("/c", router);
    },
  },
};

type CreateGateway = (options?: { requestPathPrefix?: string }) => unknown;

const createGateway: CreateGateway = (options) =>
  expressConnectMiddleware({
    ...greenhouse({
      getReading: ({ sensor }, { values }) => ({ sensor: sensor + values.get(noteKey) }),
      async *watchReadings(_request, { signal }) {
        yield { sensor: "first" };
        await once(signal, "abort");
      },
    }),
    rest: {
      rules: [
        {
          selector: `${GreenhouseService.typeName}.WatchReadings`,
          pattern: { case: "get", value: "/sensors/{sensor}/readings" },
        },
      ],
    },
    contextValues: noteOf,
    ...options,
  });

async function start(app: Application, prefixes: readonly string[]): Promise<Ask> {
  const server = await startOnLoopback(createServer(app));
  onTestFinished(() => server[Symbol.asyncDispose]());
  const ask: Ask = async (path, { headers, ...init } = {}) => {
    const header = { "content-type": "application/json", cookie: "who=ada", origin, connection: "close", ...headers };
    const response = await fetch(server.baseUrl + path, { ...init, headers: header });
    return [response.status, await response.text(), response.headers];
  };
  for (const prefix of prefixes) {
    const [httpStatus, body] = await ask(prefix + pathOf("GetReading"), { method: "POST", body: '{"sensor":"door"}' });
    expect([httpStatus, body]).toEqual([200, expect.stringContaining("door")]);
    const headers = { accept: "application/x-ndjson", connection: "close" };
    const stream = await fetch(`${server.baseUrl}${prefix}/sensors/palm/readings`, { headers });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    // Sent, and perhaps compressed, while the call is running.
    expect(await reader?.read()).toEqual({ done: false, value: '{"sensor":"first"}\n' });
    await reader?.cancel();
  }
  return ask;
}

describe.each(Object.entries(folders))("Express, %s major version", (_version, folder) => {
  const express: Express = requireFrom(folder)("express");
  const load = requireFrom(pluginFolder);

  describe.each(Object.entries(ways))("the gateway %s", (_way, { prefixes, mount }) => {
    test.each(middlewares)("serves calls if mounted after $name in the application", async (middleware) => {
      const surroundings = await surround();
      const app = express();
      app.use(middleware.create(load, surroundings));
      middleware.addRoutes?.(app);
      mount(express, app, createGateway);
      const ask = await start(app, prefixes);
      await middleware.check(ask, surroundings);
      for (const prefix of prefixes.slice(0, 1))
        await middleware.checkCall?.(ask, `${prefix}/sensors/palm/reading`, surroundings);
    });

    test.each(middlewares)("serves calls if mounted before $name in the application", async (middleware) => {
      const surroundings = await surround();
      const app = express();
      mount(express, app, createGateway);
      app.use(middleware.create(load, surroundings));
      middleware.addRoutes?.(app);
      await middleware.check(await start(app, prefixes), surroundings);
    });
  });
});
