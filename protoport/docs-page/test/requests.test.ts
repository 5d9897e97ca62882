import { createServer } from "node:http";
import { expect, test } from "vitest";
import type { Operation, Parameter } from "../src/files/description.ts";
import type { Input } from "../src/files/filled-in.ts";
import { requestOf, send } from "../src/files/request.ts";
import { startOnLoopback } from "@protoport/testing/http";

interface Row {
  readonly name: string;
  /** The path template of the RPC. In the document, it has one parameter for each wildcard. */
  readonly template?: string;
  readonly path?: string;
  readonly parameters?: readonly Parameter[];
  readonly values: Readonly<Record<string, string>>;
  readonly want: string;
}

const bed: Parameter = { name: "bed", in: "path" };
const file: Parameter = { name: "file", in: "path" };

test.each<Row>(
  // oxfmt-ignore
  [
    { name: "a slash in one segment", values: { "path bed": "a/b" }, want: "/v1/a%2Fb" },
    { name: "a space and a percent sign", values: { "path bed": "a %" }, want: "/v1/a%20%25" },
    { name: "slashes for the wildcard **", template: "/v1/{bed=**}", values: { "path bed": "a/b?" },
      want: "/v1/a/b%3F" },
    { name: "slashes for the wildcards * and **", template: "/v1/{bed=*/**}", path: "/v1/{bed}/{file}",
      parameters: [bed, file], values: { "path bed": "a/b", "path file": "c/d" }, want: "/v1/a%2Fb/c/d" },
    { name: "slashes for the wildcard ** outside a variable", template: "/v1/{bed}/*/**",
      path: "/v1/{bed}/{segment}/{file}", parameters: [bed, { name: "segment", in: "path" }, file],
      values: { "path bed": "a/b", "path segment": "c/d", "path file": "e/f" }, want: "/v1/a%2Fb/c%2Fd/e/f" },
    { name: "a slash in a parameter without a wildcard", template: "/v1/beds", values: { "path bed": "a/b" },
      want: "/v1/a%2Fb" },
    { name: "a missing value", values: {}, want: "/v1/{bed}" },
    { name: "an array of two lines and a string of two lines", path: "/v1/beds", template: "/v1/beds",
      parameters: [{ name: "tags", in: "query", schema: { type: "array" } },
        { name: "text", in: "query", schema: { type: "string" } }],
      values: { "query tags": "a\nb", "query text": "c\nd" }, want: "/v1/beds?tags=a&tags=b&text=c%0Ad" },
  ],
)("requestOf encodes $name as $want in the URL", (row) => {
  const { template = "/v1/{bed}", path = "/v1/{bed}", parameters = [bed], values, want } = row;
  const object = { responses: {}, parameters, "x-rpc": { procedure: "/beds.v1.Beds/Get", path: template } };
  const input = { values: new Map(Object.entries(values)), accept: undefined, body: undefined, contentType: undefined };
  expect(requestOf("http://beds.test", { id: "get", path, method: "GET", object }, input).url).toBe(
    `http://beds.test${want}`,
  );
});

const upload: Operation = { id: "put", path: "/v1", method: "PUT", object: { responses: {} } };

test.each<[name: string, input: Partial<Input>, want: readonly (readonly string[])[]]>(
  // oxfmt-ignore
  [
    ["the selected response format and the body's type",
      { accept: "text/event-stream", body: "{}", contentType: "application/json" },
      [["Accept", "text/event-stream"], ["Content-Type", "application/json"]]],
    ["no content type without a body", { contentType: "application/json" }, []],
    ["no empty content type", { body: "a", contentType: "" }, []],
  ],
)("requestOf sets header fields: %s", (_name, input, want) => {
  const noInput = { values: new Map(), accept: undefined, body: undefined, contentType: undefined };
  expect(requestOf("http://beds.test", upload, { ...noInput, ...input }).headers).toEqual(want);
});

test("requestOf sends the header parameters that were filled in", () => {
  const parameters = ["a", "b"].map((name) => ({ name, in: "header" }));
  const values = new Map(Object.entries({ "header a": "1", "header b": "", "query a": "2" }));
  const input = { values, accept: "text/plain", body: undefined, contentType: undefined };
  const { url, headers } = requestOf("http://beds.test", { ...upload, object: { responses: {}, parameters } }, input);
  expect([url, headers]).toEqual([
    "http://beds.test/v1",
    [
      ["a", "1"],
      ["Accept", "text/plain"],
    ],
  ]);
});

test("send sends the body, but no empty token", async () => {
  const requests: unknown[] = [];
  const server = createServer((request, response) => {
    const { authorization, "cache-control": cacheControl, "x-a": field } = request.headers;
    request.on("data", (data) => requests.push(request.method, String(data), authorization, cacheControl, field));
    request.on("end", () => response.end());
  });
  await using started = await startOnLoopback(server);
  const headers: [string, string][] = [["x-a", "1"]];
  await send({ method: "PUT", url: started.baseUrl, headers, body: "a" }, "", new AbortController().signal);
  expect(requests).toEqual(["PUT", "a", undefined, "no-cache", "1"]);
});

test("send stops waiting for the response when its signal aborts", async () => {
  const aborter = new AbortController();
  await using started = await startOnLoopback(createServer(() => aborter.abort()));
  const request = { method: "GET", url: started.baseUrl, headers: [], body: undefined };
  await expect(send(request, "", aborter.signal)).rejects.toThrow("aborted");
});

test("send does not follow a redirect with the token", async () => {
  const urls: (string | undefined)[] = [];
  const server = createServer(({ url, headers }, response) => {
    urls.push(`${url} ${headers.authorization}`);
    response.writeHead(url === "/v1" ? 302 : 200, { location: "/other" }).end();
  });
  await using started = await startOnLoopback(server);
  const request = { method: "GET", url: `${started.baseUrl}/v1`, headers: [], body: undefined };
  const { status } = await send(request, "a token", new AbortController().signal);
  expect([status, urls]).toEqual([302, ["/v1 Bearer a token"]]);
});
