import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import { expect, onTestFinished } from "vitest";
import { createTempFolder, startOnLoopback } from "@protoport/testing";
import { noteKey } from "./frameworks.ts";

export interface Request extends IncomingMessage {
  readonly body: unknown;
  readonly cookies?: Readonly<Record<string, string>>;
  readonly session?: { visits?: number };
}

type Response = { json(body: unknown): void; send(body: string): void };
type Handler = (request: Request, response: Response, next: () => void) => void;

export interface Application extends RequestListener {
  use(...handlers: unknown[]): void;
  get(path: string, handler: Handler): void;
  post(path: string, handler: Handler): void;
}

/** Sends a request with a cookie from a page on another origin. */
export type Ask = (url: string, request?: AskedRequest) => Promise<[httpStatus: number, body: string, header: Headers]>;

type AskedRequest = { method?: string; body?: string; headers?: Readonly<Record<string, string>> };
/** The resources outside the application that middleware uses. */
export type Surroundings = { readonly folder: string; readonly other: string; readonly log: PassThrough };

export interface Middleware {
  readonly name: string;
  readonly create: (load: (name: string) => CallableFunction, surroundings: Surroundings) => unknown;
  readonly addRoutes?: (app: Application) => void;
  /** Checks that the middleware works for these routes. */
  readonly check: (ask: Ask, surroundings: Surroundings) => Promise<void>;
  /** Checks calls to a gateway at this path after the middleware. */
  readonly checkCall?: (ask: Ask, path: string, surroundings: Surroundings) => Promise<void>;
}

export const origin = "https://shop.example";
/** Returns context values that contain what middleware has found out about a caller. */
export function noteOf({ cookies, session }: Request): ContextValues {
  if (session !== undefined) session.visits = (session.visits ?? 0) + 1;
  const visits = session === undefined ? "" : ` visit ${session.visits}`;
  return createContextValues().set(noteKey, cookies === undefined ? visits : ` of ${cookies["who"]}`);
}

const page: Handler = (_request, response) => response.send("a page ".repeat(1000));

// oxfmt-ignore
export const middlewares: readonly Middleware[] = [
  { name: "helmet", create: (load) => load("helmet")(),
    check: async (ask) => expect((await ask("/none"))[2].get("x-frame-options")).toBe("SAMEORIGIN"),
    checkCall: async (ask, path) => expect((await ask(path))[2].get("x-frame-options")).toBe("SAMEORIGIN") },
  { name: "cors", create: (load) => load("cors")({ origin }),
    check: async (ask) => expect((await ask("/none"))[2].get("access-control-allow-origin")).toBe(origin),
    checkCall: async (ask, path) => {
      expect((await ask(path))[2].get("access-control-allow-origin")).toBe(origin);
      const headers = { origin, "access-control-request-method": "GET" };
      expect((await ask(path, { method: "OPTIONS", headers }))[0]).toBe(204);
    } },
  { name: "compression", create: (load) => load("compression")({ threshold: 0 }),
    addRoutes: (app) => app.get("/page", page),
    check: async (ask) => expect((await ask("/page"))[2].get("content-encoding")).not.toBe(null),
    checkCall: async (ask, path) => expect((await ask(path))[2].get("content-encoding")).not.toBe(null) },
  { name: "express-rate-limit",
    create: (load) => load("express-rate-limit")({ limit: 6, legacyHeaders: true, validate: false }),
    addRoutes: (app) => app.get("/page", page),
    check: async (ask) => expect((await ask("/page"))[2].get("x-ratelimit-limit")).toBe("6"),
    checkCall: async (ask, path) => {
      for (let calls = 0; calls < 6; calls++) await ask(path);
      expect((await ask(path))[0]).toBe(429);
    } },
  { name: "cookie-parser", create: (load) => load("cookie-parser")(),
    addRoutes: (app) => app.get("/page", ({ cookies }, response) => response.json(cookies)),
    check: async (ask) => expect((await ask("/page"))[1]).toBe('{"who":"ada"}'),
    checkCall: async (ask, path) => expect((await ask(path))[1]).toContain("of ada") },
  { name: "body-parser", create: (load) => Reflect.get(load("body-parser"), "json").call(undefined),
    addRoutes: (app) => app.post("/echo", ({ body }, response) => response.json(body)), check: async (ask) => {
      expect((await ask("/echo", { method: "POST", body: '{"a":1}' }))[1]).toBe('{"a":1}');
    } },
  { name: "morgan", create: (load, { log }) => load("morgan")(":method :url :status", { stream: log }),
    addRoutes: (app) => app.get("/page", page), check: async (ask, { log }) => {
      await ask("/page");
      await expect.poll(() => String(log.read())).toContain("GET /page 200");
    }, checkCall: async (ask, path, { log }) => {
      await ask(path);
      await expect.poll(() => String(log.read())).toContain(`GET ${path} 200`);
    } },
  { name: "express-session",
    create: (load) => load("express-session")({ secret: "a", resave: false, saveUninitialized: true }),
    addRoutes: (app) => app.get("/page", page),
    check: async (ask) => expect((await ask("/page"))[2].get("set-cookie")).toContain("connect.sid="),
    checkCall: async (ask, path) => {
      const [, first, header] = await ask(path);
      expect(first).toContain("visit 1");
      const [cookie = ""] = header.get("set-cookie")?.split(";") ?? [];
      expect((await ask(path, { headers: { cookie } }))[1]).toContain("visit 2");
    } },
  { name: "serve-static", create: (load, { folder }) => load("serve-static")(folder),
    check: async (ask) => expect((await ask("/file.txt")).slice(0, 2)).toEqual([200, "a file"]) },
  { name: "http-proxy-middleware",
    create: (load, { other }) => Reflect.get(load("http-proxy-middleware"), "createProxyMiddleware").call(undefined,
      { target: other, pathFilter: "/other" }),
    check: async (ask) => expect((await ask("/other", { method: "POST", body: "{}" }))[1]).toBe("other: /other {}") },
];

export async function surround(): Promise<Surroundings> {
  const files = createTempFolder();
  writeFileSync(files.file("file.txt"), "a file");
  const other = await startOnLoopback(
    createServer((request, response) => {
      void text(request).then((body) => response.end(`other: ${request.url} ${body}`));
    }),
  );
  onTestFinished(async () => {
    files[Symbol.dispose]();
    await other[Symbol.asyncDispose]();
  });
  return { folder: files.path, other: other.baseUrl, log: new PassThrough({ encoding: "utf8" }) };
}
