import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { type EveryTransport, exchangeFetch, fieldValue, type HttpRequest, openEveryTransport, transportNames
} from "@protoport/testing";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { FileService } from "../../../../testing/src/gen/files/v1/files_pb.ts";
import { createGateway } from "../../../src/index.ts";
import { toRestHeader } from "../../../src/protocols/rest/response-header.ts";

describe("toRestHeader()", () => {
  test("keeps metadata and converts trailers to header fields", () => {
    const header = new Headers([
      ["X-Cost", "1"],
      ["x-cost", "2"],
      ["Set-Cookie", "a=1"],
      ["Set-Cookie", "b=2"],
      ["Retry-After", "1"],
      ["Key-Bin", "QQ"],
      ["ETag", '"x"'],
    ]);
    const trailer = new Headers({ "X-Cost": "9", "X-Late": "3" });
    // oxfmt-ignore
    expect(toRestHeader(header, trailer)).toEqual([
      "etag", '"x"', "key-bin", "QQ", "retry-after", "1", "set-cookie", "a=1", "set-cookie", "b=2", "x-cost", "1, 2",
      "x-late", "3",
    ]);
  });

  test.each(
    // oxfmt-ignore
    [
      "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Type",
      "Content-Length", "Content-Encoding", "Host", "Grpc-Status", "Grpc-Encoding", "Grpc-Anything",
      "Connect-Protocol-Version",
    ],
  )("omits the %s field", (name) => {
    expect(toRestHeader(new Headers([[name, "x"]]), new Headers([[name, "x"]]))).toEqual([]);
  });

  test.each(["\u0001", "a\u007fb", "a\u001f"])("omits the value %j because it contains a control character", (value) =>
    expect(toRestHeader(new Headers({ "x-cost": value }), new Headers({ "x-late": value }))).toEqual([]),
  );

  test("keeps a tab and non-ASCII bytes in values", () =>
    expect(toRestHeader(new Headers({ "x-cost": "a\tb\u00e9" }))).toEqual(["x-cost", "a\tb\u00e9"]));
});

// The content of a google.api.HttpBody may be untrusted, but browsers give it this server's origin.

let files: EveryTransport;
let contentType = "";
let ownFields: Readonly<Record<string, string>> = {};

beforeAll(async () => {
  const setFields = ({ responseHeader }: { responseHeader: Headers }): void => {
    for (const [name, value] of Object.entries(ownFields)) responseHeader.set(name, value);
  };
  const file = { data: Buffer.from("bytes") };
  files = await openEveryTransport({
    routes: (router) =>
      router.service(FileService, {
        getFile: (_, context) => (setFields(context), { ...file, contentType }),
        getPart: (_, context) => (setFields(context), { name: "a", file: { ...file, contentType } }),
        async *download(_, context) {
          setFields(context);
          yield { ...file, contentType };
        },
      }),
  });
});

afterAll(() => files[Symbol.asyncDispose]());

/** Returns a response's status, Content-Security-Policy and X-Content-Type-Options. */
async function ask(
  path: string,
  type: string,
  own: typeof ownFields = {},
  transport: (typeof transportNames)[number] = "the engine's HTTP/1.1",
  httpMethod: HttpRequest["httpMethod"] = "GET",
): Promise<readonly [number, string | undefined, string | undefined]> {
  contentType = type;
  ownFields = own;
  const { httpStatus, header } = await files.ask(transport, { httpMethod, path, header: [] });
  return [httpStatus, fieldValue(header, "content-security-policy"), fieldValue(header, "x-content-type-options")];
}

const paths = ["/files/a", "/parts/a", "/downloads/a"];

describe.each(transportNames)("a response of bytes over %s", (transport) => {
  test.each(paths)("at %s has nosniff, and a sandbox policy for HTML", async (path) => {
    expect(await ask(path, "text/html", {}, transport)).toEqual([200, "sandbox", "nosniff"]);
    expect(await ask(path, "image/png", {}, transport)).toEqual([200, undefined, "nosniff"]);
    expect(await ask(path, "text/html", {}, transport, "HEAD")).toEqual([200, "sandbox", "nosniff"]);
  });
});

test.each(
  // oxfmt-ignore
  [
    "text/html; charset=utf-8", "TEXT/HTML", "text/javascript", "text/plain", "application/xhtml+xml",
    "application/octet-stream", "", "image/svg+xml", "image/SVG+XML ; charset=utf-8", "image/svg+xml ",
    "image/svg+xml\t", "image/x+xml", "video/x+xml;a=b", "image/png;a=b,text/html", "application/pdf-viewer",
    "application/pdf+xml", "multipart/x-mixed-replace", "x-image/png",
  ],
)("a response of bytes with the type %j has a sandbox policy", async (type) => {
  expect(await ask("/files/a", type)).toEqual([200, "sandbox", "nosniff"]);
});

// oxfmt-ignore
test.each([
  "application/pdf", "Application/PDF ; version=1.7", "image/png", "IMAGE/JPEG", "image/gif;a=b", "audio/mpeg",
  "video/mp4; codecs=avc1", "font/woff2",
])("a response of bytes with the type %j has no sandbox policy", async (type) => {
  expect(await ask("/files/a", type)).toEqual([200, undefined, "nosniff"]);
});

test.each(paths)("a response of bytes at %s, keeps the Content-Security-Policy of the handler", async (path) => {
  const own = { "Content-Security-Policy": "default-src 'none'" };
  expect(await ask(path, "text/html", own)).toEqual([200, "default-src 'none'", "nosniff"]);
});

test.each(paths)("a response of bytes at %s, has nosniff even if the handler allows sniffing", async (path) => {
  expect(await ask(path, "text/html", { "X-Content-Type-Options": "none" })).toEqual([200, "sandbox", "nosniff"]);
});

test.each(paths)("a response of bytes at %s, gets no added fields if its status has no body", async (path) => {
  expect(await ask(path, "text/html", { status: "304" })).toEqual([304, undefined, undefined]);
});

describe("a handler's ETag", () => {
  let status = "200";
  let etag = '"a"';
  const setFields = ({ responseHeader }: { responseHeader: Headers }): void => {
    responseHeader.set("status", status);
    responseHeader.set("etag", etag);
  };
  const { fetch } = createGateway({
    routes: (router) =>
      router.service(GreenhouseService, {
        getReading: ({ sensor }, context) => (setFields(context), { sensor }),
        async *watchReadings(_, context) {
          setFields(context);
          yield {};
          await nextTurn();
          yield {};
        },
      }),
    rest: {
      rules: [{ selector: "greenhouse.v1.GreenhouseService.WatchReadings", pattern: { case: "get", value: "/watch" } }],
      service: () => ({ partialResponses: true }),
    },
  });
  const mask = "x-goog-fieldmask";
  const reading = `/sensors/${"s".repeat(2000)}/reading`;
  const connect = `/greenhouse.v1.GreenhouseService/GetReading?encoding=json&message={"sensor":"${"s".repeat(2000)}"}`;

  /** Requests a path, and returns the status, `ETag`, `Content-Encoding` and `Vary` of the response. */
  const request = async (httpMethod: string, path: string, coding: string, known = ""): Promise<readonly unknown[]> => {
    const sent = Object.entries({ "accept-encoding": coding, "if-none-match": known });
    const { httpStatus, header } = await exchangeFetch(fetch, { httpMethod, path, header: sent });
    return [httpStatus, ...["etag", "content-encoding", "vary"].map((name) => fieldValue(header, name))];
  };

  test.each([
    { name: "a unary call", httpMethod: "GET", path: reading, vary: `${mask}, accept-encoding`, coded: true },
    { name: "HEAD", httpMethod: "HEAD", path: reading, vary: `${mask}, accept-encoding`, coded: true },
    { name: "a stream", httpMethod: "GET", path: "/watch", vary: `accept, ${mask}, accept-encoding`, coded: true },
    { name: "HEAD of a stream", httpMethod: "HEAD", path: "/watch", vary: `accept, ${mask}, accept-encoding` },
    { name: "a Connect GET", httpMethod: "GET", path: connect, vary: "accept-encoding", coded: true },
  ])("is weak in a compressed response to $name", async ({ httpMethod, path, vary, coded = false }) => {
    status = "200";
    for (const coding of ["gzip", "br"]) {
      etag = '"a"';
      expect(await request(httpMethod, path, coding)).toEqual([200, 'W/"a"', coded ? coding : undefined, vary]);
      etag = 'W/"b"';
      expect(await request(httpMethod, path, coding)).toEqual([200, 'W/"b"', coded ? coding : undefined, vary]);
    }
    etag = '"c"';
    expect(await request(httpMethod, path, "identity")).toEqual([200, '"c"', undefined, vary]);
  });

  test.each([
    { name: "unary call", path: reading, vary: `${mask}, accept-encoding` },
    { name: "stream", path: "/watch", vary: `accept, ${mask}, accept-encoding` },
  ])("is that of the 200 in a 304 to a $name", async ({ path, vary }) => {
    [status, etag] = ["304", '"a"'];
    for (const httpMethod of ["GET", "HEAD"]) {
      expect(await request(httpMethod, path, "gzip", '"b", W/"a"')).toEqual([304, 'W/"a"', undefined, vary]);
      // A response below `compressMinBytes` has the strong ETag.
      expect(await request(httpMethod, path, "gzip", '"a"')).toEqual([304, '"a"', undefined, vary]);
      expect(await request(httpMethod, path, "identity", 'W/"a"')).toEqual([304, '"a"', undefined, vary]);
    }
  });

  test("is unchanged in a 204, which has no Vary", async () => {
    [status, etag] = ["204", '"a"'];
    expect(await request("HEAD", reading, "gzip", 'W/"a"')).toEqual([204, '"a"', undefined, undefined]);
  });
});
