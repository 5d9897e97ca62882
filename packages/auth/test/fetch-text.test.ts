import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { fetchText, providerResponseLimitBytes } from "../src/fetch-text.ts";
import { startOnLoopback } from "../../testing/src/carriers/listen-on-loopback.ts";
import { within } from "../../testing/src/deadline.ts";

const patient = new AbortController().signal;

/** A provider that answers like this. */
async function startProvider(answer: RequestListener): Promise<AsyncDisposable & { readonly url: URL }> {
  const server = await startOnLoopback(createServer(answer));
  return { ...server, url: new URL(server.baseUrl) };
}

describe("asking an identity provider", () => {
  test.each([
    { status: 200, kind: "value" },
    { status: 201, kind: "problems" },
    { status: 203, kind: "problems" },
    { status: 204, kind: "problems" },
    { status: 206, kind: "problems" },
    { status: 299, kind: "problems" },
    { status: 302, kind: "problems" },
    { status: 404, kind: "problems" },
    { status: 500, kind: "problems" },
  ])("takes an answer with the status $status as $kind", async ({ status, kind }) => {
    await using provider = await startProvider((_, response) => {
      response.writeHead(status, { location: "/elsewhere" }).end();
    });
    expect(await fetchText({ url: provider.url, signal: patient })).toMatchObject({ kind, httpStatus: status });
  });

  test.each([
    { name: "a GET without a form", form: undefined, header: undefined, want: ["GET", "application/json", ""] },
    {
      name: "a POST with one",
      form: new URLSearchParams({ a: "b c" }),
      header: undefined,
      want: ["POST", "application/json", "a=b+c"],
    },
    { name: "what it is told to accept", form: undefined, header: { accept: "text/x" }, want: ["GET", "text/x", ""] },
  ])("sends $name", async ({ form, header, want }) => {
    await using provider = await startProvider((request, response) => {
      let body = "";
      request.on("data", (piece: Buffer) => (body += String(piece)));
      request.on("end", () => response.end(JSON.stringify([request.method, request.headers.accept, body])));
    });
    const answer = await fetchText({ url: provider.url, form, header, signal: patient });
    expect(answer).toEqual({ kind: "value", value: JSON.stringify(want), httpStatus: 200 });
  });

  test.each([
    { name: "before its header", begin: () => {} },
    { name: "within its body", begin: (response: ServerResponse) => response.write("{") },
  ])("ends with its signal where the answer stops $name", async ({ begin }) => {
    const controller = new AbortController();
    await using provider = await startProvider((_, response) => {
      begin(response);
      setImmediate(() => controller.abort(new Error("too late")));
    });
    const answer = fetchText({ url: provider.url, signal: controller.signal });
    expect(await within(answer, "the answer")).toEqual({
      kind: "problems",
      problems: [`cannot fetch ${provider.url.href}: too late`],
    });
  });

  test("leaves the rest of what is no answer unread, and its connection closed", async () => {
    let closed: Promise<unknown> | undefined;
    await using provider = await startProvider((_, response) => {
      closed = once(response, "close");
      response.writeHead(403).write("no ");
    });
    await fetchText({ url: provider.url, signal: patient });
    await within(Promise.resolve(closed), "the connection to be closed");
  });

  test.each([
    { name: "as much as the limit", bytes: providerResponseLimitBytes, isCompressed: false, kind: "value" },
    { name: "more", bytes: providerResponseLimitBytes + 1, isCompressed: false, kind: "problems" },
    { name: "more than that in a small package", bytes: 2 ** 24, isCompressed: true, kind: "problems" },
  ])("takes $name as $kind", async ({ bytes, isCompressed, kind }) => {
    const body = Buffer.alloc(bytes, "x");
    await using provider = await startProvider((_, response) => {
      if (isCompressed) response.setHeader("content-encoding", "gzip").end(gzipSync(body));
      else response.end(body);
    });
    expect(await fetchText({ url: provider.url, signal: patient })).toMatchObject({ kind });
  });

  test.each([
    { name: "bytes that are no UTF-8", body: Buffer.from([0x22, 0xff, 0x22]) },
    { name: "a character that is cut short", body: Buffer.from("ä").subarray(0, 1) },
  ])("refuses $name", async ({ body }) => {
    await using provider = await startProvider((_, response) => {
      response.end(body);
    });
    expect(await fetchText({ url: provider.url, signal: patient })).toMatchObject({ kind: "problems" });
  });

  test("says what the system says where nobody answers", async () => {
    const provider = await startProvider(() => {});
    await provider[Symbol.asyncDispose]();
    const { url } = provider;
    expect(await fetchText({ url, signal: patient })).toEqual({
      kind: "problems",
      problems: [`cannot fetch ${url.href}: connect ECONNREFUSED ${url.host}`],
    });
  });

  test("reads a character that comes in two pieces, and says nothing of a query that goes wrong", async () => {
    await using provider = await startProvider((request, response) => {
      if (request.url === "/gone?key=secret") return request.socket.destroy();
      const bytes = Buffer.from("ä");
      response.write(bytes.subarray(0, 1), () => setImmediate(() => response.end(bytes.subarray(1))));
      return undefined;
    });
    expect(await fetchText({ url: provider.url, signal: patient })).toMatchObject({ value: "ä" });
    const gone = await fetchText({ url: new URL("/gone?key=secret", provider.url), signal: patient });
    expect(JSON.stringify(gone)).toContain(`${provider.url.origin}/gone: `);
    expect(JSON.stringify(gone)).not.toContain("secret");
  });
});
