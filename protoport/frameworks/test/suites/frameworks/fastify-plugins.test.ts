import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTempFolder } from "@protoport/testing/process";
import { fastifyConnectPlugin } from "../../../src/fastify.ts";
import { folders, greenhouse, noteKey, pathOf, pluginsOfFastify, requireFrom } from "./frameworks.ts";
import { type Application, type Injected, noteOf, plugins, reading } from "./usual-plugins.ts";

// Common Fastify plugins, registered before and after the gateway, which is mounted in several ways.

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

interface HookReply {
  readonly raw: ServerResponse;
  setCookie(name: string, value: string): void;
  code(status: number): HookReply;
  header(name: string, value: string): HookReply;
  hijack(): HookReply;
  send(): void;
}
type Hook = (request: object, reply: HookReply, ...others: unknown[]) => unknown;

const setLast: Hook = (_request, reply, payload, done) => {
  reply.setCookie("last", "2");
  Object(done)(null, payload);
};
type ErrorHandler = (error: object, request: object, reply: HookReply) => void;

/** What an `onSend` hook does that ends a call, and the response. */
// oxfmt-ignore
const endingHooks: readonly {
  readonly name: string;
  readonly run: (reply: HookReply, payload: unknown) => unknown;
  readonly want: readonly [status: number, body: unknown, location?: string];
}[] = [
  { name: "returns text", run: () => "denied", want: [200, "denied"] },
  { name: "returns a Buffer", run: () => Buffer.from("denied"), want: [200, "denied"] },
  { name: "returns a stream", run: () => Readable.from(["de", "nied"]), want: [200, "denied"] },
  { name: "sets a status", run: (reply) => void reply.code(403), want: [403, ""] },
  { name: "redirects", run: (reply) => void reply.code(302).header("location", "/login"), want: [302, "", "/login"] },
  { name: "ends the response", run: ({ raw }) => void raw.writeHead(403).end("denied"), want: [403, "denied"] },
  { name: "begins the response", run: ({ raw }) => void raw.writeHead(403), want: [403, ""] },
  { name: "writes", run: ({ raw }) => void raw.write("denied"), want: [200, "denied"] },
  { name: "calls hijack() and responds", run: (reply) => void reply.hijack().raw.end("own"), want: [200, "own"] },
  { name: "calls hijack() and responds later",
    run: (reply) => void setImmediate((raw: ServerResponse) => raw.end("own"), reply.hijack().raw),
    want: [200, "own"] },
];

const setNotFound: Hook = (_request, reply, done) => Object(done)(void reply.code(404));

const namesIn = ({ headers }: Injected): readonly string[] =>
  [headers["set-cookie"] ?? []].flat().map((cookie) => cookie.split("=")[0] ?? "");

describe.each(Object.entries(folders))("Fastify, %s major version", (version, folder) => {
  const fastify: () => Application = requireFrom(folder)("fastify");
  const requirePlugin = pluginsOfFastify(version);
  let runs = 0;
  const gateway = {
    ...greenhouse({
      getReading: ({ sensor }, { values }) => {
        runs += 1;
        return { sensor: sensor + values.get(noteKey) };
      },
    }),
    contextValues: noteOf,
  };

  function create(): Application {
    const app = fastify();
    onTestFinished(() => app.close());
    return app;
  }

  describe.each(Object.entries(ways))("the gateway %s", (_way, { prefixes, mount }) => {
    test.each(plugins)("serves calls through @fastify/$name if mounted after it", async (plugin) => {
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

    test.each(plugins)("serves calls if mounted before @fastify/$name in the application", async (plugin) => {
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

  describe("with @fastify/cookie and @fastify/session", () => {
    function createWithCookies(onSend: Hook): Application {
      const app = create();
      const hookable: { addHook(name: string, hook: Hook): unknown } = Object(app);
      app.register(requirePlugin("cookie"));
      app.register(requirePlugin("session"), { secret: "s".repeat(32), cookie: { secure: false } });
      hookable.addHook("onRequest", (_request, reply, done) => {
        reply.setCookie("first", "1");
        Object(done)();
      });
      hookable.addHook("onSend", onSend);
      app.register(fastifyConnectPlugin, gateway);
      app.register(async (child: Application) => child.get("/page", {}, (_request, reply) => reply.send("a page")));
      return app;
    }

    test("cookies of all hooks reach calls and own routes", async () => {
      const app = createWithCookies(setLast);
      runs = 0;
      const call = { method: "POST", url: pathOf("GetReading"), payload: { sensor: "door" } };
      for (const request of [reading, call, { method: "GET", url: "/page" }]) {
        const response = await app.inject(request);
        expect([response.statusCode, namesIn(response).toSorted()]).toEqual([200, ["first", "last", "sessionId"]]);
      }
      expect(runs).toBe(2);
    });

    test("a status of an earlier hook does not end the call", async () => {
      const app = createWithCookies(setLast);
      Object(app).addHook("preHandler", setNotFound);
      expect(await app.inject(reading)).toMatchObject({ statusCode: 200, body: expect.stringContaining("palm") });
    });

    test("a call with a session keeps it", async () => {
      const app = createWithCookies(setLast);
      const cookies: readonly string[] = Object((await app.inject(reading)).headers["set-cookie"]);
      const cookie = cookies.find((each) => each.startsWith("sessionId="))?.split(";")[0];
      const response = await app.inject({ ...reading, headers: { cookie } });
      const kept = [response.headers["set-cookie"] ?? []].flat().find((each) => each.startsWith("sessionId="));
      expect(kept?.split(";")[0] ?? cookie).toBe(cookie);
    });

    /** Calls an RPC over a socket. Returns the response, and how often the handler ran. */
    async function callWith(onSend: Hook, onError?: ErrorHandler): Promise<unknown[]> {
      runs = 0;
      const app = createWithCookies(onSend);
      if (onError !== undefined) Object(app).setErrorHandler(onError);
      const response = await fetch(`${await app.listen({ host: "127.0.0.1", port: 0 })}${reading.url}`, {
        redirect: "manual",
      });
      const { status, headers } = response;
      return [[status, await response.text(), headers.get("location")].filter((each) => each !== null), runs];
    }

    test.each(endingHooks)("a hook that $name ends the call before its handler", async ({ run, want }) => {
      expect(await callWith(async (_request, reply, payload) => run(reply, payload))).toEqual([want, 0]);
    });

    test.each([
      { name: "always", failures: 2, onError: undefined, want: [500, expect.stringContaining("the hook failed")] },
      { name: "once", failures: 1, onError: undefined, want: [500, expect.stringContaining("the hook failed")] },
      {
        name: "once, with an error handler that responds without a body",
        failures: 1,
        onError: (_error: object, _request: object, reply: HookReply): void => reply.code(200).send(),
        want: [200, ""],
      },
    ])("a hook that fails $name ends the call before its handler", async ({ failures, onError, want }) => {
      let calls = 0;
      const hook: Hook = async (_request, _reply, payload) => {
        calls += 1;
        if (calls <= failures) throw new Error("the hook failed");
        return payload;
      };
      expect(await callWith(hook, onError)).toEqual([want, 0]);
    });
  });
});
