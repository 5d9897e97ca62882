import { createServer, type RequestListener } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { startOnLoopback } from "@protoport/testing/http";
import { expressConnectMiddleware } from "../../../src/express.ts";
import { fastifyConnectPlugin } from "../../../src/fastify.ts";
import { folders, greenhouse, pluginFolder, requireFrom } from "./frameworks.ts";
import { listen, nestVersions } from "./nest-application.ts";
import type { Application as Express } from "./usual-middleware.ts";
import type { Application as Fastify } from "./usual-plugins.ts";

// POST requests that browsers send without a preflight, from pages of this and other sites, in every framework.

const shop = "https://shop.example";
const unlisted = greenhouse({ waterBed: ({ bed }) => ({ bed }) });
const options = { ...unlisted, cors: { origins: [shop] } };
type Site = { readonly name: string; readonly start: () => Promise<string> };

async function startExpress(folder: string): Promise<string> {
  const app: Express = requireFrom(folder)("express")();
  app.use(requireFrom(pluginFolder)("cors")({ origin: shop }));
  app.use("/listing", expressConnectMiddleware(options));
  app.use(expressConnectMiddleware(unlisted));
  app.post("/own", (_request, response) => response.json({}));
  const server = await startOnLoopback(createServer(app satisfies RequestListener));
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server.baseUrl;
}

async function startFastify(folder: string): Promise<string> {
  const app: Fastify = requireFrom(folder)("fastify")();
  onTestFinished(() => app.close());
  app.register(fastifyConnectPlugin, { ...options, prefix: "/listing" });
  app.register(fastifyConnectPlugin, unlisted);
  app.post("/own", (_request, reply) => reply.send({}));
  await app.listen({ host: "127.0.0.1", port: 0 });
  const address = app.server.address();
  return `http://127.0.0.1:${typeof address === "object" ? String(address?.port) : ""}`;
}

const sites: readonly Site[] = [
  ...Object.entries(folders).flatMap(([version, folder]) => [
    { name: `Express, ${version} major version`, start: () => startExpress(folder) },
    { name: `Fastify, ${version} major version`, start: () => startFastify(folder) },
  ]),
  ...nestVersions.map(([name, { create }]) => ({
    name: `Nest, ${name}`,
    start: async () => await listen(await create()),
  })),
];

describe.each(sites)("$name", ({ name, start }) => {
  // oxfmt-ignore
  const rows: readonly (readonly [title: string, path: string, headers: object, httpStatus: number])[] = [
    ["a page of another site is refused", "/beds/7:water", { "sec-fetch-site": "cross-site" }, 403],
    ["a form of another site is refused", "/beds/7:water", { origin: shop, "content-type": "text/plain" }, 403],
    ["a page of this site is served", "/beds/7:water", { "sec-fetch-site": "same-origin", origin: shop }, 200],
    ["curl is served", "/beds/7:water", {}, 200],
    ["JSON of another site is served", "/beds/7:water", { origin: shop, "content-type": "application/json" }, 200],
    ["a listed origin is served by the second gateway", "/listing/beds/7:water", { origin: shop }, 200],
    ["an unlisted origin is refused by the second gateway", "/listing/beds/7:water", { origin: "https://a.example" },
      403],
    ["the application's own path is served", "/own", { "sec-fetch-site": "cross-site" }, 200],
  ];

  test.each(rows.filter(([, path]) => !name.startsWith("Nest") || path.startsWith("/beds")))(
    "%s, without a preflight",
    async (_title, path, headers, httpStatus) => {
      const body = new Blob([path === "/own" ? "" : '{"liters":3}']);
      const url = (await start()) + path;
      const response = await fetch(url, { method: "POST", headers: { connection: "close", ...headers }, body });
      expect([response.status, await response.text()]).toEqual([httpStatus, expect.any(String)]);
    },
  );
});
