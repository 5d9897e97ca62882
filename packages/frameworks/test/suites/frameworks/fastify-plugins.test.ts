import { writeFileSync } from "node:fs";
import { createContextKey, createContextValues } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTempFolder } from "../../../../testing/src/process/temp-folder.ts";
import { type FastifyLike, fastifyConnectPlugin } from "../../../src/fastify.ts";
import { folders, greenhouse, pathOf, pluginsOfFastify, requireFrom } from "./frameworks.ts";

// The usual plugins of Fastify, each registered before and after the gateway, which is mounted in several ways.

interface Reply {
  send(body: unknown): Reply;
}

interface Request {
  readonly body: unknown;
  readonly cookies?: Readonly<Record<string, string>>;
  file?(): Promise<{ toBuffer(): Promise<Buffer> }>;
}

interface Injected {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Application extends FastifyLike {
  register(plugin: unknown, options?: object): void;
  get(path: string, options: object, handler: (request: Request, reply: Reply) => unknown): void;
  post(path: string, handler: (request: Request, reply: Reply) => unknown): void;
  inject(request: object): Promise<Injected>;
  listen(options: object): Promise<string>;
  ready(): Promise<void>;
  close(): Promise<void>;
  swagger?(): { readonly paths: object };
}

/** A plugin, and what it does. */
interface Plugin {
  readonly name: string;
  readonly options?: (folder: string) => object;
  /** Adds routes of the application that use the plugin. */
  readonly addRoutes?: (app: Application) => void;
  /** Checks that these routes, or the plugin itself, work. */
  readonly check: (app: Application) => Promise<void>;
  /** Checks the last response of a gateway that is registered after the plugin. */
  readonly checkCall?: (response: Injected, app: Application, url: string) => void | Promise<void>;
}

const origin = "https://shop.example";
const cookieKey = createContextKey("none");

/** The request of a browser for a reading. */
const reading = { method: "GET", url: "/sensors/palm/reading", headers: { origin, cookie: "who=ada" } };

function page(_request: Request, reply: Reply): unknown {
  return reply.send("a page ".repeat(1000));
}

const plugins: readonly Plugin[] = [
  {
    name: "static",
    options: (folder) => ({ root: folder }),
    check: async (app) => {
      expect(await app.inject({ method: "GET", url: "/file.txt" })).toMatchObject({ statusCode: 200, body: "a file" });
      expect(await app.inject({ method: "GET", url: "/none.txt" })).toMatchObject({ statusCode: 404 });
    },
  },
  {
    name: "cors",
    options: () => ({ origin }),
    check: async (app) => {
      const headers = { origin, "access-control-request-method": "POST" };
      expect(await app.inject({ method: "OPTIONS", url: "/page", headers })).toMatchObject({ statusCode: 204 });
    },
    checkCall: async ({ headers }, app, url) => {
      expect(headers["access-control-allow-origin"]).toBe(origin);
      const preflight = { origin, "access-control-request-method": "GET" };
      expect((await app.inject({ method: "OPTIONS", url, headers: preflight })).statusCode).toBe(204);
    },
  },
  {
    name: "helmet",
    check: async (app) => expect((await app.inject({ url: "/none" })).headers["x-frame-options"]).toBe("SAMEORIGIN"),
    checkCall: ({ headers }) => expect(headers["x-frame-options"]).toBe("SAMEORIGIN"),
  },
  {
    name: "compress",
    addRoutes: (app) => app.get("/page", {}, page),
    check: async (app) => {
      const headers = { "accept-encoding": "gzip" };
      expect((await app.inject({ method: "GET", url: "/page", headers })).headers["content-encoding"]).toBe("gzip");
    },
  },
  {
    name: "rate-limit",
    options: () => ({ max: 5 }),
    addRoutes: (app) => app.get("/page", {}, page),
    check: async (app) =>
      expect((await app.inject({ method: "GET", url: "/page" })).headers["x-ratelimit-limit"]).toBe("5"),
    checkCall: async ({ headers }, app, url) => {
      expect(headers["x-ratelimit-limit"]).toBe("5");
      for (let calls = 0; calls < 5; calls++) await app.inject({ ...reading, url });
      expect((await app.inject({ ...reading, url })).statusCode).toBe(429);
    },
  },
  {
    name: "cookie",
    addRoutes: (app) => app.get("/page", {}, ({ cookies }, reply) => reply.send(cookies?.["who"])),
    check: async (app) => expect((await app.inject({ ...reading, url: "/page" })).body).toBe("ada"),
    checkCall: ({ body }) => expect(JSON.parse(body)).toEqual({ sensor: "palm of ada" }),
  },
  {
    name: "multipart",
    addRoutes: (app) => {
      app.post("/upload", async (request) => String(await (await request.file?.())?.toBuffer()));
    },
    check: async (app) => {
      const payload = '--a\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\na file\r\n--a--\r\n';
      const headers = { "content-type": "multipart/form-data; boundary=a" };
      expect(await app.inject({ method: "POST", url: "/upload", headers, payload })).toMatchObject({ body: "a file" });
    },
  },
  {
    name: "formbody",
    addRoutes: (app) => app.post("/form", async ({ body }) => body),
    check: async (app) => {
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const form = await app.inject({ method: "POST", url: "/form", headers, payload: "a=1" });
      expect(JSON.parse(form.body)).toEqual({ a: "1" });
    },
  },
  {
    name: "swagger",
    options: () => ({ openapi: {} }),
    addRoutes: (app) => app.get("/page", {}, page),
    check: async (app) => expect(Object.keys(app.swagger?.().paths ?? {})).toEqual(["/page"]),
  },
  {
    name: "websocket",
    addRoutes: (app) =>
      app.get("/socket", { websocket: true }, (socket) => void Reflect.get(socket, "send").call(socket, "hello")),
    check: async (app) => {
      const url = await app.listen({ host: "127.0.0.1", port: 0 });
      const socket = new WebSocket(`${url.replace("http", "ws")}/socket`);
      const message = await new Promise((resolve) => socket.addEventListener("message", ({ data }) => resolve(data)));
      expect(message).toBe("hello");
      socket.close();
    },
  },
];

/** The ways to mount the gateway, and the prefixes of its paths. */
const ways: Readonly<
  Record<string, { prefixes: readonly string[]; mount: (app: Application, gateway: object) => void }>
> = {
  "at the root": { prefixes: [""], mount: (app, gateway) => app.register(fastifyConnectPlugin, gateway) },
  "below a prefix": {
    prefixes: ["/api"],
    mount: (app, gateway) => app.register(fastifyConnectPlugin, { ...gateway, prefix: "/api" }),
  },
  twice: {
    prefixes: ["", "/b"],
    mount: (app, gateway) => {
      app.register(fastifyConnectPlugin, gateway);
      app.register(fastifyConnectPlugin, { ...gateway, requestPathPrefix: "/b" });
    },
  },
  "in a context": {
    prefixes: ["/c"],
    mount: (app, gateway) =>
      app.register(async (child: Application) => child.register(fastifyConnectPlugin, gateway), { prefix: "/c" }),
  },
};

describe.each(Object.entries(folders))("Fastify, %s major version", (version, folder) => {
  const fastify: () => Application = requireFrom(folder)("fastify");
  const requirePlugin = pluginsOfFastify(version);
  const gateway = {
    ...greenhouse({ getReading: ({ sensor }, { values }) => ({ sensor: sensor + values.get(cookieKey) }) }),
    contextValues: ({ cookies }: Request) =>
      createContextValues().set(cookieKey, cookies === undefined ? "" : ` of ${cookies["who"]}`),
  };

  function create(): Application {
    const app = fastify();
    onTestFinished(() => app.close());
    return app;
  }

  /** Checks calls below each prefix, and returns the last URL and its response. */
  async function checkCalls(app: Application, prefixes: readonly string[]): Promise<[string, Injected]> {
    let url = "";
    let response: Injected | undefined;
    for (const prefix of prefixes) {
      const call = { method: "POST", url: prefix + pathOf("GetReading"), payload: { sensor: "door" } };
      expect(JSON.parse((await app.inject(call)).body)).toMatchObject({ sensor: expect.stringMatching(/^door/) });
      url = prefix + reading.url;
      response = await app.inject({ ...reading, url });
      expect(JSON.parse(response.body)).toMatchObject({ sensor: expect.stringMatching(/^palm/) });
    }
    if (response === undefined) throw new Error("there is no prefix");
    return [url, response];
  }

  describe.each(Object.entries(ways))("the gateway %s", (_way, { prefixes, mount }) => {
    test.each(plugins)("serves calls after @fastify/$name, whose hooks run for them", async (plugin) => {
      using files = createTempFolder();
      writeFileSync(files.file("file.txt"), "a file");
      const app = create();
      app.register(requirePlugin(plugin.name), plugin.options?.(files.path) ?? {});
      app.register(async (child: Application) => plugin.addRoutes?.(child));
      mount(app, gateway);
      await app.ready();
      const [url, response] = await checkCalls(app, prefixes);
      await plugin.check(app);
      await plugin.checkCall?.(response, app, url);
    });

    test.each(plugins)("serves calls before @fastify/$name", async (plugin) => {
      using files = createTempFolder();
      writeFileSync(files.file("file.txt"), "a file");
      const app = create();
      mount(app, gateway);
      app.register(requirePlugin(plugin.name), plugin.options?.(files.path) ?? {});
      app.register(async (child: Application) => plugin.addRoutes?.(child));
      await app.ready();
      await checkCalls(app, prefixes);
      await plugin.check(app);
    });
  });
});
