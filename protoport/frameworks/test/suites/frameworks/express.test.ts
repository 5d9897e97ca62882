import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createContextKey, createContextValues } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { routes } from "../../../../examples/servers/greenhouse.ts";
import { listenOnLoopback } from "@protoport/testing/http";
import { expressConnectMiddleware } from "../../../src/express.ts";
import { folders, greenhouse, pathOf, requireFrom } from "./frameworks.ts";

type Response = { status(httpStatus: number): Response; json(body: unknown): void };

interface Request extends IncomingMessage {
  readonly body: unknown;
  readonly session: object;
}

interface Express {
  (): RequestListener & {
    use(...handlers: unknown[]): void;
    post(path: string, handler: (request: Request, response: Response) => void): void;
  };
  json(): unknown;
}

const origin = "https://shop.example";
const visitKey = createContextKey("none");

async function serveApplication(app: RequestListener): Promise<string> {
  const server = createServer(app);
  onTestFinished(() => void server.close());
  return await listenOnLoopback(server);
}

/** Sends a request on a new connection, so that `server.close` does not wait for idle ones. */
async function ask(url: string, init: RequestInit = {}): Promise<[number, unknown, Headers]> {
  const response = await fetch(url, { ...init, headers: { "content-type": "application/json", connection: "close" } });
  return [response.status, await response.json(), response.headers];
}

describe.each(Object.entries(folders))("Express, %s major version", (_version, folder) => {
  const require = requireFrom(folder);
  const express: Express = require("express");

  test("the middleware serves calls, and the application serves other requests", async () => {
    const app = express();
    app.use(require("helmet")(), require("cors")({ origin }));
    app.use(expressConnectMiddleware({ routes }), express.json());
    app.post("/echo", ({ body }, response) => response.json(body));
    const baseUrl = await serveApplication(app);
    const [httpStatus, reading, header] = await ask(`${baseUrl}/sensors/palm/reading`);
    expect([httpStatus, reading]).toEqual([200, { sensor: "palm", degreesCelsius: 21 }]);
    expect([header.get("x-frame-options"), header.get("access-control-allow-origin")]).toEqual(["SAMEORIGIN", origin]);
    const call = { method: "POST", body: '{"sensor":"door"}' };
    expect((await ask(baseUrl + pathOf("GetReading"), call))[1]).toEqual({ sensor: "door", degreesCelsius: 12.5 });
    expect((await ask(`${baseUrl}/echo`, { method: "POST", body: '{"to":"you"}' }))[1]).toEqual({ to: "you" });
    const invalid = await ask(baseUrl + pathOf("GetReading"), { method: "POST", body: "{" });
    expect(invalid[1]).toMatchObject({ code: "invalid_argument" });
  });

  test("the path in `use` is a prefix of all RPC paths", async () => {
    const app = express();
    app.use("/api", expressConnectMiddleware({ routes }));
    app.use((_request: Request, response: Response) => response.status(404).json("no page"));
    const baseUrl = await serveApplication(app);
    expect((await ask(`${baseUrl}/api/sensors/palm/reading`))[0]).toBe(200);
    expect((await ask(`${baseUrl}/api${pathOf("GetReading")}`, { method: "POST", body: "{}" }))[0]).toBe(404);
    expect((await ask(`${baseUrl}/sensors/palm/reading`))[1]).toBe("no page");
  });

  test("`contextValues` gets Express's request, with its session", async () => {
    const app = express();
    app.use(require("express-session")({ secret: "a", resave: false, saveUninitialized: false }));
    app.use((request: Request, _response: Response, next: () => void) => {
      Object.assign(request.session, { visit: "first" });
      next();
    });
    app.use(
      expressConnectMiddleware({
        ...greenhouse({ getReading: (_request, { values }) => ({ sensor: values.get(visitKey) }) }),
        contextValues: ({ session }: Request) =>
          createContextValues().set(visitKey, String(Reflect.get(session, "visit"))),
      }),
    );
    const baseUrl = await serveApplication(app);
    const [, body, header] = await ask(`${baseUrl}/sensors/palm/reading`);
    expect(body).toMatchObject({ sensor: "first" });
    expect(header.get("set-cookie")).toContain("connect.sid=");
  });

  test("the application's error handler gets no errors from RPC handlers", async () => {
    const app = express();
    const faults: unknown[] = [];
    app.use(async (request: Request, _response: Response, next: () => void) => {
      request.resume();
      await once(request, "end");
      next();
    });
    const failing = greenhouse({ getReading: () => Promise.reject(new Error("disk on fire")) });
    app.use(expressConnectMiddleware({ ...failing, onFault: (error) => void faults.push(error) }));
    app.use((error: Error, _: Request, response: Response, _next: unknown) => response.status(500).json(error.message));
    const baseUrl = await serveApplication(app);
    const consumed = await ask(`${baseUrl}/beds/7:water`, { method: "POST", body: '{"liters":3}' });
    expect(consumed[1]).toMatch(/mount the gateway before any body parser/);
    expect(faults).toEqual([]);
    const fault = await ask(`${baseUrl}/sensors/palm/reading`);
    expect([fault[0], JSON.stringify(fault[1])]).toEqual([500, expect.not.stringContaining("disk")]);
    expect(faults).toEqual([expect.objectContaining({ message: "disk on fire" })]);
  });

  test("a misspelled handler is refused when the middleware is created", () => {
    const misspelled: object = { getReadings: () => ({}) };
    expect(() => expressConnectMiddleware(greenhouse(misspelled))).toThrow('did you mean "getReading"?');
  });
});
