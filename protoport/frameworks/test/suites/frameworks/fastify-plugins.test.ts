import { writeFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTempFolder } from "../../../../testing/src/process/temp-folder.ts";
import { fastifyConnectPlugin } from "../../../src/fastify.ts";
import { folders, greenhouse, noteKey, pathOf, pluginsOfFastify, requireFrom } from "./frameworks.ts";
import { type Application, type Injected, noteOf, plugins, reading } from "./usual-plugins.ts";

// Common Fastify plugins, registered before and after the gateway, which is mounted in several ways.

/** The ways to mount the gateway, with their path prefixes. */
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

interface Cookies {
  setCookie(name: string, value: string): void;
}
type Hook = (request: object, reply: Cookies, ...others: unknown[]) => void;

const setLast: Hook = (_request, reply, payload, done) => {
  reply.setCookie("last", "2");
  Object(done)(null, payload);
};

const namesIn = ({ headers }: Injected): readonly string[] =>
  [headers["set-cookie"] ?? []].flat().map((cookie) => cookie.split("=")[0] ?? "");

describe.each(Object.entries(folders))("Fastify, %s major version", (version, folder) => {
  const fastify: () => Application = requireFrom(folder)("fastify");
  const requirePlugin = pluginsOfFastify(version);
  const gateway = {
    ...greenhouse({ getReading: ({ sensor }, { values }) => ({ sensor: sensor + values.get(noteKey) }) }),
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
    /** Creates an application whose hooks set cookies, with an own route beside the gateway. */
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
      const call = { method: "POST", url: pathOf("GetReading"), payload: { sensor: "door" } };
      for (const request of [reading, call, { method: "GET", url: "/page" }]) {
        const response = await app.inject(request);
        expect([response.statusCode, namesIn(response).toSorted()]).toEqual([200, ["first", "last", "sessionId"]]);
      }
    });

    test("a call with a session keeps it", async () => {
      const app = createWithCookies(setLast);
      const cookies: readonly string[] = Object((await app.inject(reading)).headers["set-cookie"]);
      const cookie = cookies.find((each) => each.startsWith("sessionId="))?.split(";")[0];
      const response = await app.inject({ ...reading, headers: { cookie } });
      const kept = [response.headers["set-cookie"] ?? []].flat().find((each) => each.startsWith("sessionId="));
      expect(kept?.split(";")[0] ?? cookie).toBe(cookie);
    });

    test("a hook that fails ends the call before its handler", async () => {
      const app = createWithCookies((_request, _reply, _payload, done) => Object(done)(new Error("the hook failed")));
      const { statusCode, body } = await app.inject(reading);
      expect([statusCode, JSON.parse(body)]).toMatchObject([500, { message: "the hook failed" }]);
    });
  });
});
