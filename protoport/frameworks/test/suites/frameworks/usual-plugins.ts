import type { Server } from "node:net";
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import { expect } from "vitest";
import type { FastifyLike } from "../../../src/fastify.ts";
import { noteKey } from "./frameworks.ts";

type Reply = { send(body: unknown): Reply };

export interface Request {
  readonly body: unknown;
  readonly cookies?: Readonly<Record<string, string>>;
  file?(): Promise<{ toBuffer(): Promise<Buffer> }>;
}

export type Injected = { statusCode: number; headers: Readonly<Record<string, string>>; body: string };

export interface Application extends FastifyLike {
  readonly server: Server;
  register(plugin: unknown, options?: object): void;
  get(path: string, options: object, handler: (request: Request, reply: Reply) => unknown): void;
  post(path: string, handler: (request: Request, reply: Reply) => unknown): void;
  inject(request: object): Promise<Injected>;
  listen(options: object): Promise<string>;
  ready(): Promise<void>;
  close(): Promise<void>;
  swagger?(): { readonly paths: object };
}

export interface Plugin {
  readonly name: string;
  readonly options?: (folder: string) => object;
  readonly addRoutes?: (app: Application) => void;
  /** Checks that these routes, or the plugin itself, work. */
  readonly check: (app: Application) => Promise<void>;
  /** Checks the last response from a gateway that is registered after the plugin. */
  readonly checkCall?: (response: Injected, app: Application, url: string) => void | Promise<void>;
}

const origin = "https://shop.example";
export const reading: { readonly method: string; readonly url: string; readonly headers: object } = {
  method: "GET",
  url: "/sensors/palm/reading",
  headers: { origin, cookie: "who=ada" },
};

/** Returns context values that contain what plugins have found out about a caller. */
export const noteOf = ({ cookies }: Request): ContextValues =>
  createContextValues().set(noteKey, cookies === undefined ? "" : ` of ${cookies["who"]}`);

const page = (_request: Request, reply: Reply): unknown => reply.send("a page ".repeat(1000));

// oxfmt-ignore
export const plugins: readonly Plugin[] = [
  { name: "static", options: (folder) => ({ root: folder }), check: async (app) => {
      expect(await app.inject({ method: "GET", url: "/file.txt" })).toMatchObject({ statusCode: 200, body: "a file" });
      expect(await app.inject({ method: "GET", url: "/none.txt" })).toMatchObject({ statusCode: 404 });
    } },
  { name: "cors", options: () => ({ origin }), check: async (app) => {
      const headers = { origin, "access-control-request-method": "POST" };
      expect(await app.inject({ method: "OPTIONS", url: "/page", headers })).toMatchObject({ statusCode: 204 });
    }, checkCall: async ({ headers }, app, url) => {
      expect(headers["access-control-allow-origin"]).toBe(origin);
      const preflight = { origin, "access-control-request-method": "GET" };
      expect((await app.inject({ method: "OPTIONS", url, headers: preflight })).statusCode).toBe(204);
    } },
  { name: "helmet",
    check: async (app) => expect((await app.inject({ url: "/none" })).headers["x-frame-options"]).toBe("SAMEORIGIN"),
    checkCall: ({ headers }) => expect(headers["x-frame-options"]).toBe("SAMEORIGIN") },
  { name: "compress", addRoutes: (app) => app.get("/page", {}, page), check: async (app) => {
      const headers = { "accept-encoding": "gzip" };
      expect((await app.inject({ method: "GET", url: "/page", headers })).headers["content-encoding"]).toBe("gzip");
    } },
  { name: "rate-limit", options: () => ({ max: 5 }), addRoutes: (app) => app.get("/page", {}, page),
    check: async (app) =>
      expect((await app.inject({ method: "GET", url: "/page" })).headers["x-ratelimit-limit"]).toBe("5"),
    checkCall: async ({ headers }, app, url) => {
      expect(headers["x-ratelimit-limit"]).toBe("5");
      for (let calls = 0; calls < 5; calls++) await app.inject({ ...reading, url });
      expect((await app.inject({ ...reading, url })).statusCode).toBe(429);
    } },
  { name: "cookie", addRoutes: (app) => app.get("/page", {}, ({ cookies }, reply) => reply.send(cookies?.["who"])),
    check: async (app) => expect((await app.inject({ ...reading, url: "/page" })).body).toBe("ada"),
    checkCall: ({ body }) => expect(JSON.parse(body)).toEqual({ sensor: "palm of ada" }) },
  { name: "multipart", addRoutes: (app) => {
      app.post("/upload", async (request) => String(await (await request.file?.())?.toBuffer()));
    }, check: async (app) => {
      const payload = '--a\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\na file\r\n--a--\r\n';
      const headers = { "content-type": "multipart/form-data; boundary=a" };
      expect(await app.inject({ method: "POST", url: "/upload", headers, payload })).toMatchObject({ body: "a file" });
    } },
  { name: "formbody", addRoutes: (app) => app.post("/form", async ({ body }) => body), check: async (app) => {
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const form = await app.inject({ method: "POST", url: "/form", headers, payload: "a=1" });
      expect(JSON.parse(form.body)).toEqual({ a: "1" });
    } },
  { name: "swagger", options: () => ({ openapi: {} }), addRoutes: (app) => app.get("/page", {}, page),
    check: async (app) => {
      const paths = Object.keys(app.swagger?.().paths ?? {});
      expect(paths).toContain("/page");
      expect(paths.filter((path) => /sensors|greenhouse/.test(path))).toEqual([]);
    } },
  { name: "websocket", addRoutes: (app) =>
      app.get("/socket", { websocket: true }, (socket) => void Reflect.get(socket, "send").call(socket, "hello")),
    check: async (app) => {
      if (!app.server.listening) await app.listen({ host: "127.0.0.1", port: 0 });
      const address = app.server.address();
      const port = typeof address === "object" ? address?.port : undefined;
      const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`);
      const message = await new Promise((resolve) => socket.addEventListener("message", ({ data }) => resolve(data)));
      expect(message).toBe("hello");
      socket.close();
    } },
];
