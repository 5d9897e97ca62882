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

  test("a hook adds a cookie with serializeCookie of @fastify/cookie", async () => {
    const app = create();
    app.register(requirePlugin("cookie"));
    const addCookie = (_request: unknown, reply: object, done: () => void): void => {
      Reflect.get(reply, "header").call(reply, "set-cookie", Reflect.get(app, "serializeCookie")("seen", "1"));
      done();
    };
    const hookable: { addHook(name: string, hook: unknown): unknown } = Object(app);
    hookable.addHook("onRequest", addCookie);
    app.register(fastifyConnectPlugin, gateway);
    const { headers, body } = await app.inject(reading);
    expect([headers["set-cookie"], JSON.parse(body)]).toEqual(["seen=1", { sensor: "palm of ada" }]);
  });
});
