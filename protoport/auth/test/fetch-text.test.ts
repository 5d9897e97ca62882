import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { fetchText, providerResponseLimitBytes } from "../src/fetch-text.ts";
import { startOnLoopback, within } from "@protoport/testing";

const neverAborted = new AbortController().signal;

async function startProvider(handler: RequestListener): Promise<AsyncDisposable & { readonly url: URL }> {
  const server = await startOnLoopback(createServer(handler));
  return { ...server, url: new URL(server.baseUrl) };
}

test.each([
  { status: 200, kind: "value" },
  ...[201, 203, 204, 206, 299, 302, 404, 500].map((status) => ({ status, kind: "problems" })),
])("fetchText returns $kind for a $status response", async ({ status, kind }) => {
  await using provider = await startProvider((_, response) => {
    response.writeHead(status, { location: "/elsewhere" }).end();
  });
  expect(await fetchText({ url: provider.url, signal: neverAborted })).toMatchObject({ kind, httpStatus: status });
});

const posted = new URLSearchParams({ a: "b c" });

test.each([
  ["sends a GET if no form is given", undefined, undefined, ["GET", "application/json", ""]],
  ["sends a POST if a form is given", posted, undefined, ["POST", "application/json", "a=b+c"]],
  ["sends the given Accept header", undefined, { accept: "text/x" }, ["GET", "text/x", ""]],
])("fetchText %s", async (_name, form, header, want) => {
  await using provider = await startProvider((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += String(piece)));
    request.on("end", () => response.end(JSON.stringify([request.method, request.headers.accept, body])));
  });
  const fetched = await fetchText({ url: provider.url, form, header, signal: neverAborted });
  expect(fetched).toEqual({ kind: "value", value: JSON.stringify(want), httpStatus: 200 });
});

test.each([
  { name: "the response header", begin: () => {} },
  { name: "the complete response body", begin: (response: ServerResponse) => response.write("{") },
])("fetchText fails if its signal aborts before $name is received", async ({ begin }) => {
  const controller = new AbortController();
  await using provider = await startProvider((_, response) => {
    begin(response);
    setImmediate(() => controller.abort(new Error("too late")));
  });
  expect(await within(fetchText({ url: provider.url, signal: controller.signal }), "the result")).toEqual({
    kind: "problems",
    problems: [`cannot fetch ${provider.url.href}: too late`],
  });
});

test("fetchText closes the connection after a response with status 403", async () => {
  let closed: Promise<unknown> | undefined;
  await using provider = await startProvider((_, response) => {
    closed = once(response, "close");
    response.writeHead(403).write("no ");
  });
  await fetchText({ url: provider.url, signal: neverAborted });
  await within(Promise.resolve(closed), "the connection to be closed");
});

test.each([
  ["value", "a body as large as the limit", providerResponseLimitBytes, false],
  ["problems", "a body larger than the limit", providerResponseLimitBytes + 1, false],
  ["problems", "a compressed body that exceeds the limit when decoded", 2 ** 24, true],
])("fetchText returns %s when %s arrives", async (kind, _name, bytes, isCompressed) => {
  const body = Buffer.alloc(bytes, "x");
  await using provider = await startProvider((_, response) => {
    if (isCompressed) response.setHeader("content-encoding", "gzip").end(gzipSync(body));
    else response.end(body);
  });
  expect(await fetchText({ url: provider.url, signal: neverAborted })).toMatchObject({ kind });
});

test.each([
  { name: "invalid UTF-8", body: Buffer.from([0x22, 0xff, 0x22]) },
  { name: "a truncated character", body: Buffer.from("ä").subarray(0, 1) },
])("fetchText reports a body with $name as a problem", async ({ body }) => {
  await using provider = await startProvider((_, response) => void response.end(body));
  expect(await fetchText({ url: provider.url, signal: neverAborted })).toMatchObject({ kind: "problems" });
});

test("fetchText reports the system error when the connection is refused", async () => {
  const provider = await startProvider(() => {});
  await provider[Symbol.asyncDispose]();
  const { url } = provider;
  expect(await fetchText({ url, signal: neverAborted })).toEqual({
    kind: "problems",
    problems: [`cannot fetch ${url.href}: connect ECONNREFUSED ${url.host}`],
  });
});

test("fetchText decodes a split character, and omits URL queries from problems", async () => {
  await using provider = await startProvider((request, response) => {
    if (request.url === "/closed?key=secret") return request.socket.destroy();
    const bytes = Buffer.from("ä");
    response.write(bytes.subarray(0, 1), () => setImmediate(() => response.end(bytes.subarray(1))));
    return undefined;
  });
  expect(await fetchText({ url: provider.url, signal: neverAborted })).toMatchObject({ value: "ä" });
  const closed = await fetchText({ url: new URL("/closed?key=secret", provider.url), signal: neverAborted });
  expect(JSON.stringify(closed)).toContain(`${provider.url.origin}/closed: `);
  expect(JSON.stringify(closed)).not.toContain("secret");
});
