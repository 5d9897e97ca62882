import { createHash } from "node:crypto";
import { get } from "node:http";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ServiceImpl } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createGateway, type Gateway } from "../../src/gateway/index.ts";
import { createOpenApi } from "../../src/gateway/openapi/index.ts";
import { ErrorCode } from "../../src/gateway/http2/index.ts";
import { FileService } from "../gen/files/v1/files_pb.ts";
import { HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import {
  type Address,
  type Field,
  fieldValue,
  type HttpAnswer,
  type HttpVersion,
} from "../support/carriers/exchange.ts";
import { heldBytes } from "../support/carriers/held-bytes.ts";
import { openHttp1 } from "../support/carriers/http1-connection.ts";
import { within } from "../support/deadline.ts";
import { exchange } from "../support/gateway/wire-format.ts";

// google.api.HttpBody: bytes that are neither JSON nor base64, wherever a rule may have them.

const bytes = Buffer.from([0x00, 0xff, 0x0a, 0x22, 0x7b]);

interface Files extends AsyncDisposable {
  readonly address: Address;
  readonly gateway: Gateway;
}

async function startFiles(http2: "own" | "node", service: Partial<ServiceImpl<typeof FileService>>): Promise<Files> {
  const gateway = createGateway({ routes: (router) => router.service(FileService, service) });
  const address = await gateway.listen({ http2 });
  return { gateway, address, [Symbol.asyncDispose]: () => gateway.close() };
}

describe.each<{ readonly name: string; readonly version: HttpVersion; readonly http2: "own" | "node" }>([
  { name: "HTTP/1.1", version: "1.1", http2: "own" },
  { name: "HTTP/2", version: "2", http2: "own" },
  { name: "HTTP/2 of node", version: "2", http2: "node" },
])("a body of bytes over $name", ({ version, http2 }) => {
  const ask = async (
    files: Files,
    [httpMethod, path]: readonly [string, string],
    header: readonly Field[] = [],
    body?: Uint8Array,
  ): Promise<HttpAnswer> =>
    await exchange(files.address, version, { httpMethod, path, header, ...(body !== undefined && { body }) });

  test("is the answer, with its content type, its length and the handler's fields", async () => {
    await using files = await startFiles(http2, {
      getFile: ({ name }, { responseHeader }) => {
        responseHeader.set("content-disposition", `attachment; filename="${name}"`);
        responseHeader.set("etag", '"1"');
        return { contentType: "image/png", data: bytes };
      },
    });
    const { httpStatus, header, body } = await ask(files, ["GET", "/files/a.png"], [["accept-encoding", "gzip"]]);
    const seen = ["content-type", "content-length", "content-disposition", "etag", "content-encoding"];
    expect([httpStatus, ...seen.map((name) => fieldValue(header, name))]).toEqual([
      200,
      "image/png",
      "5",
      'attachment; filename="a.png"',
      '"1"',
      undefined,
    ]);
    expect(body).toEqual(bytes);
  });

  test("is a field of the answer, or of the request", async () => {
    let put: unknown;
    await using files = await startFiles(http2, {
      getPart: () => ({ name: "x", file: { contentType: "text/plain", data: bytes } }),
      putFile: ({ name, file }) => {
        put = { name, contentType: file?.contentType, data: file && Buffer.from(file.data) };
        return {};
      },
    });
    const part = await ask(files, ["GET", "/parts/a"]);
    expect([fieldValue(part.header, "content-type"), part.body]).toEqual(["text/plain", bytes]);
    const sent = await ask(files, ["PUT", "/files/a%2Fb"], [["content-type", "application/x-thing; a=b"]], bytes);
    expect(sent.httpStatus).toBe(200);
    expect(put).toEqual({ name: "a/b", contentType: "application/x-thing; a=b", data: bytes });
  });

  test.each([
    { type: "text/html; charset=latin-1", body: bytes },
    { type: "application/json", body: Buffer.from("{nothing that is JSON") },
    { type: "application/grpc", body: bytes },
  ])("is the request, of whatever type: $type", async ({ type, body }) => {
    await using files = await startFiles(http2, { echo: (message) => message });
    const answer = await ask(files, ["POST", "/echo"], [["content-type", type]], body);
    expect([answer.httpStatus, fieldValue(answer.header, "content-type")]).toEqual([200, type]);
    expect(answer.body).toEqual(body);
  });

  test.each([
    { contentType: "", want: "application/octet-stream" },
    { contentType: "a/b", want: "a/b" },
  ])("is of type $want where the handler says $contentType", async ({ contentType, want }) => {
    await using files = await startFiles(http2, { getFile: () => ({ contentType, data: bytes }) });
    expect(fieldValue((await ask(files, ["GET", "/files/a"])).header, "content-type")).toBe(want);
  });

  test.each(["a", "a/b\r\nset-cookie: c=d", "a/b, c/d", "é/b", "a/b;\0", "a/b\n"])(
    "cannot have the content type %j",
    async (contentType) => {
      await using files = await startFiles(http2, { getFile: () => ({ contentType, data: bytes }) });
      const { httpStatus, header } = await ask(files, ["GET", "/files/a"]);
      expect([httpStatus, fieldValue(header, "set-cookie")]).toEqual([500, undefined]);
    },
  );

  test("comes in pieces, without anything between them", async () => {
    await using files = await startFiles(http2, {
      async *download({ name }) {
        yield { contentType: "text/plain", data: bytes };
        yield { contentType: "ignored/later", data: Buffer.from(name) };
      },
    });
    const answer = await ask(files, ["GET", "/downloads/abc"], [["accept", "text/event-stream"]]);
    expect([answer.httpStatus, fieldValue(answer.header, "content-type")]).toEqual([200, "text/plain"]);
    expect(answer.body).toEqual(Buffer.concat([bytes, Buffer.from("abc")]));
  });

  test("is told from a complete one by its client, where it fails on the way", async () => {
    await using files = await startFiles(http2, {
      async *download({ name }) {
        if (name === "later") yield { data: bytes };
        await new Promise((resolve) => setTimeout(resolve, 20));
        throw new ConnectError("gone", Code.NotFound);
      },
    });
    // By a connection that ends within a chunk on HTTP/1.1, and an error code on HTTP/2.
    const cut = ask(files, ["GET", "/downloads/later"]);
    if (version === "1.1") await expect(cut).rejects.toThrow();
    else await expect(cut).resolves.toMatchObject({ resetCode: ErrorCode.internalError });
    expect((await ask(files, ["GET", "/downloads/at-once"])).httpStatus).toBe(404);
  });
});

test("a body of bytes is downloaded in constant memory", async () => {
  const piece = Buffer.alloc(64 * 1024, "x");
  const pieces = 4096;
  let highest = 0;
  await using files = await startFiles("own", {
    async *download() {
      for (let at = 0; at < pieces; at += 1) {
        if (at % 1024 === 1023) highest = Math.max(highest, await heldBytes());
        yield create(HttpBodySchema, { data: piece });
      }
    },
  });
  const before = await heldBytes();
  const { address, port } = files.address;
  const hash = createHash("sha256");
  let length = 0;
  const done = new Promise<void>((resolve, reject) => {
    get({ host: address, port, path: "/downloads/a" }, (response) => {
      response.on("data", (chunk: Buffer) => {
        length += chunk.byteLength;
        hash.update(chunk);
      });
      response.on("end", resolve).on("error", reject);
    });
  });
  await within(done, "256 MiB");
  expect(length).toBe(pieces * piece.byteLength);
  expect(highest - before).toBeLessThan(16 * 1024 * 1024);
});

test("a body of bytes that ends within its announced length is refused, and not handed on", async () => {
  let called = false;
  await using files = await startFiles("own", {
    echo: (message) => {
      called = true;
      return message;
    },
  });
  using connection = await openHttp1(files.address);
  connection.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Length: 10\r\n\r\nabc");
  connection.socket.end();
  await connection.readToEnd();
  expect(called).toBe(false);
});

test("a body of bytes is described as of any type", () => {
  const { paths } = createOpenApi([FileService], { info: { title: "Files", version: "1" } });
  const any = { "*/*": { schema: {} } };
  expect(paths["/files/{name}"]?.get?.responses["200"]?.content).toEqual(any);
  expect(paths["/downloads/{name}"]?.get?.responses["200"]?.content).toEqual(any);
  expect(paths["/files/{name}"]?.put?.requestBody?.content).toEqual(any);
  expect(paths["/echo"]?.post?.requestBody?.content).toEqual(any);
});
