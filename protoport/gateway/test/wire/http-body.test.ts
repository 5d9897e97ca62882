import { gzipSync } from "node:zlib";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createOpenApi } from "../../src/openapi/index.ts";
import { ErrorCode } from "../../src/http/exchange/index.ts";
import { waysFor } from "@protoport/testing/process";
import { FileService, type UploadRequest } from "../../../testing/src/gen/files/v1/files_pb.ts";
import type { HttpBody } from "../../src/protobuf/gen/google/api/httpbody_pb.ts";
import { exchangeFetch, type Field, fieldValue, type HttpResponse } from "@protoport/testing/http";
import { startFiles, type TestFiles } from "../../../testing/src/gateway/files.ts";
import { onFirstWay, openUpload, restWays } from "../../../testing/src/gateway/rest-upload.ts";
import { exchange } from "../../../testing/src/gateway/wire-format.ts";

/** Throws if the response was reset. A reset is a code over HTTP/2, and status 500 over Fetch before the body. */
function toWhole(answer: HttpResponse & { readonly resetCode?: number }): HttpResponse {
  const { httpStatus, resetCode = ErrorCode.noError } = answer;
  if (httpStatus !== 200 || resetCode !== ErrorCode.noError) throw new Error("the answer was reset");
  return answer;
}

// Bytes that are neither JSON nor base64, in every place where a rule allows them (google.api.HttpBody).

const bytes = Buffer.from([0x00, 0xff, 0x0a, 0x22, 0x7b]);

/** Keeps what is uploaded. */
function keeper() {
  const kept: { name: string; note: string; contentType: string; data: Buffer }[] = [];
  const upload = async (requests: AsyncIterable<UploadRequest>) => {
    for await (const { name, note, file } of requests)
      kept.push({ name, note, contentType: file?.contentType ?? "none", data: Buffer.from(file?.data ?? []) });
    const [first] = kept;
    return { ...first, length: BigInt(kept.reduce((sum, { data }) => sum + data.byteLength, 0)) };
  };
  return { kept, upload };
}

/** Yields five bytes in two pieces that are `turns` turns apart, in a stream with an announced length. */
const inTwoPieces = (row: { readonly length: number | string; readonly turns: number }) => ({
  async *download(_: unknown, { responseHeader }: HandlerContext) {
    responseHeader.set("content-length", String(row.length));
    yield { contentType: "a/b", data: bytes.subarray(0, 3) };
    // Waits two turns for each, because the gateway sends chunks only when a turn ends.
    for (let end = 0; end < 2 * row.turns; end += 1) await nextTurn();
    yield { data: bytes.subarray(3) };
  },
});

describe.each(waysFor(restWays))("google.api.HttpBody over $name", (way) => {
  const { version, http2 } = way;
  const ask = async (
    files: TestFiles,
    [httpMethod, path]: readonly [string, string],
    header: readonly Field[] = [],
    body?: Uint8Array,
  ): Promise<HttpResponse> => {
    const request = { httpMethod, path, header, ...(body !== undefined && { body }) };
    if (version === "fetch") return await exchangeFetch(files.gateway.fetch, request);
    return await exchange(files.address, version, request);
  };

  test("is sent with its content type, its length and the handler's fields", async () => {
    await using files = await startFiles(http2, {
      getFile: ({ name }, { responseHeader }) => {
        responseHeader.set("content-disposition", `attachment; filename="${name}"`);
        responseHeader.set("etag", '"1"');
        return { contentType: "image/png", data: bytes };
      },
    });
    const { httpStatus, header, body } = await ask(files, ["GET", "/files/a.png"], [["accept-encoding", "gzip"]]);
    expect([
      httpStatus,
      ...["content-type", "content-length", "content-disposition", "etag", "content-encoding"].map((name) =>
        fieldValue(header, name),
      ),
    ]).toEqual([200, "image/png", "5", 'attachment; filename="a.png"', '"1"', undefined]);
    expect(body).toEqual(bytes);
  });

  test("can be a field of a request or a response", async () => {
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

  test("is base64 in the JSON of another message", async () => {
    const service = FileService.typeName;
    const get = { selector: `${service}.GetPart`, pattern: { case: "get", value: "/parts/{name}" } } as const;
    const whole = {
      selector: `${service}.PutFile`,
      pattern: { case: "put", value: "/files/{name}" },
      body: "*",
    } as const;
    const handlers = { getPart: () => ({ file: { contentType: "a/b", data: bytes } }), putFile: () => ({}) };
    await using files = await startFiles(http2, handlers, { rest: { rules: [get, whole] } });
    const json = `{"file":{"contentType":"a/b","data":"${bytes.toString("base64")}"}}`;
    expect((await ask(files, ["GET", "/parts/a"])).body.toString()).toBe(json);
    const put = async (type: string): Promise<number> =>
      (await ask(files, ["PUT", "/files/a"], [["content-type", type]], Buffer.from(json))).httpStatus;
    expect([await put("application/json"), await put("a/b")]).toEqual([200, 415]);
  });

  test.each([
    { type: "text/html; charset=latin-1", body: bytes },
    { type: "application/json", body: Buffer.from("{nothing that is JSON") },
    { type: "application/grpc", body: bytes },
  ])("keeps the content type $type in both directions", async ({ type, body }) => {
    await using files = await startFiles(http2, { echo: (message) => message });
    const answer = await ask(files, ["POST", "/echo"], [["content-type", type]], body);
    expect([answer.httpStatus, fieldValue(answer.header, "content-type"), answer.body]).toEqual([200, type, body]);
  });

  test.each<{ readonly name: string; readonly header: readonly Field[]; readonly want: string }>([
    { name: "with a content type but no bytes", header: [["content-type", "c/d"]], want: "c/d" },
    { name: "without content type and bytes", header: [], want: "" },
  ])("$name reaches the handler", async ({ header, want }) => {
    const taken: unknown[] = [];
    const take = (file: HttpBody | undefined): void => {
      taken.push(file && { contentType: file.contentType, length: file.data.byteLength });
    };
    const { upload, kept } = keeper();
    await using files = await startFiles(http2, {
      echo: (file) => (take(file), file),
      putFile: ({ file }) => (take(file), {}),
      upload,
    });
    for (const body of [undefined, Buffer.of()]) {
      expect((await ask(files, ["POST", "/echo"], header, body)).httpStatus).toBe(200);
      expect((await ask(files, ["PUT", "/files/a"], header, body)).httpStatus).toBe(200);
      expect((await ask(files, ["PUT", "/uploads/a"], header, body)).httpStatus).toBe(200);
    }
    expect(taken).toEqual(Array.from({ length: 4 }, () => ({ contentType: want, length: 0 })));
    expect(kept.map(({ contentType }) => contentType)).toEqual([want, want]);
  });

  const expected = "Content-Type must be a media type such as image/png";
  const envelope = "the content type must not be multipart/form-data; send the bytes alone, with curl --data-binary";
  test.each(
    onFirstWay(way, [
      { type: "garbage", message: `${expected}, got "garbage"` },
      { type: "a/", message: `${expected}, got "a/"` },
      { type: "a/b, c/d", message: `${expected}, got "a/b, c/d"` },
      { type: "a b/c", message: `${expected}, got "a b/c"` },
      { type: "multipart/form-data; boundary=x", message: envelope },
      { type: "Multipart/Form-Data ;boundary=x", message: envelope },
      { type: "multipart/form-data", message: envelope },
    ]),
  )("with the content type $type is refused", async ({ type, message }) => {
    let calls = 0;
    const count = (): object => ({ calls: (calls += 1) });
    await using files = await startFiles(http2, { echo: count, putFile: count, upload: async () => count() });
    const header: readonly Field[] = [["content-type", type]];
    const targets = [
      ["POST", "/echo"],
      ["PUT", "/files/a"],
      ["PUT", "/uploads/a"],
      ["POST", "/pipe"],
    ] as const;
    for (const target of targets)
      for (const body of [undefined, bytes]) {
        const answer = await ask(files, target, header, body);
        expect([answer.httpStatus, JSON.parse(answer.body.toString()).message]).toEqual([415, message]);
      }
    expect(calls).toBe(0);
  });

  test.each(
    onFirstWay(way, [
      { contentType: "", want: "application/octet-stream" },
      { contentType: "a/b", want: "a/b" },
    ]),
  )("has Content-Type $want if the handler sets '$contentType'", async ({ contentType, want }) => {
    await using files = await startFiles(http2, { getFile: () => ({ contentType, data: bytes }) });
    expect(fieldValue((await ask(files, ["GET", "/files/a"])).header, "content-type")).toBe(want);
  });

  test.each(onFirstWay(way, ["a", "a/b\r\nset-cookie: c=d", "a/b, c/d", "é/b", "a/b;\0", "a/b\n"]))(
    "rejects the content type %j of a handler",
    async (contentType) => {
      await using files = await startFiles(http2, { getFile: () => ({ contentType, data: bytes }) });
      const { httpStatus, header } = await ask(files, ["GET", "/files/a"]);
      expect([httpStatus, fieldValue(header, "set-cookie")]).toEqual([500, undefined]);
    },
  );

  test.each([
    { status: "206", field: ["content-range", "bytes 0-4/9"], want: 206, body: bytes },
    { status: "304", field: ["etag", '"1"'], want: 304, body: Buffer.of() },
    { status: "204", field: ["x-a", "b"], want: 204, body: Buffer.of() },
    // A response uses the handler's status only if it is a success status.
    { status: "416", field: ["x-a", "b"], want: 200, body: bytes },
    { status: "100", field: ["x-a", "b"], want: 200, body: bytes },
    { status: "206 Partial Content", field: ["x-a", "b"], want: 200, body: bytes },
  ] as const)("is sent with status $want if the handler sets '$status'", async ({ status, field, want, body }) => {
    const [name, value] = field;
    const choose = ({ responseHeader }: HandlerContext): void => {
      responseHeader.set("status", status);
      responseHeader.set(name, value);
    };
    await using files = await startFiles(http2, {
      getFile: (_, context) => (choose(context), { contentType: "a/b", data: bytes }),
      async *download({ name: file }, context) {
        choose(context);
        if (file === "late") await new Promise((resolve) => setTimeout(resolve));
        yield { contentType: "a/b", data: bytes };
      },
    });
    for (const path of ["/files/a", "/downloads/a", "/downloads/late"]) {
      const answer = await ask(files, ["GET", path]);
      expect([answer.httpStatus, answer.body, fieldValue(answer.header, name)]).toEqual([want, body, value]);
      expect(fieldValue(answer.header, "status")).toBeUndefined();
      expect(fieldValue(answer.header, "content-type")).toBe(body === bytes ? "a/b" : undefined);
    }
  });

  test.each([
    { status: "412", want: 412 },
    { status: "200", want: 400 },
  ])("becomes an error with status $want if the handler sets $status and throws", async ({ status, want }) => {
    const refuse = ({ responseHeader }: HandlerContext): never => {
      responseHeader.set("status", status);
      throw new ConnectError("it was changed", Code.FailedPrecondition, { status: "418", "x-a": "b" });
    };
    await using files = await startFiles(http2, {
      getFile: (_, context) => refuse(context),
      // oxlint-disable-next-line require-yield -- it fails before it has anything
      async *download(_, context) {
        refuse(context);
      },
    });
    for (const path of ["/files/a", "/downloads/a"]) {
      const answer = await ask(files, ["GET", path]);
      expect([answer.httpStatus, JSON.parse(answer.body.toString()).message]).toEqual([want, "it was changed"]);
      expect(["status", "x-a"].map((name) => fieldValue(answer.header, name))).toEqual([undefined, "b"]);
    }
  });

  test("can be uploaded with a 201 response", async () => {
    await using files = await startFiles(http2, {
      putFile: (_, { responseHeader }) => (responseHeader.set("status", "201"), {}),
    });
    const answer = await ask(files, ["PUT", "/files/a"], [["content-type", "a/b"]], bytes);
    expect([answer.httpStatus, answer.body.toString()]).toEqual([201, "{}"]);
  });

  test.each([
    { name: "one chunk", pieces: 1, isImmediate: true },
    { name: "three chunks", pieces: 3, isImmediate: true },
    { name: "three delayed chunks", pieces: 3, isImmediate: false },
  ])("in $name keeps the handler's Content-Length", async (row) => {
    await using files = await startFiles(http2, {
      async *download(_, { responseHeader }) {
        responseHeader.set("content-length", String(row.pieces * bytes.byteLength));
        for (let sent = 0; sent < row.pieces; sent += 1) {
          yield { data: bytes };
          if (!row.isImmediate) await new Promise((resolve) => setTimeout(resolve));
        }
      },
    });
    for (const method of ["GET", "HEAD"]) {
      const { header, body } = await ask(files, [method, "/downloads/a"]);
      expect(fieldValue(header, "content-length")).toBe(String(row.pieces * bytes.byteLength));
      expect(body.byteLength).toBe(method === "HEAD" ? 0 : row.pieces * bytes.byteLength);
    }
  });

  const record = '{"code":13,"status":"INTERNAL","message":"internal error","details":[]}';
  test.each([
    // The first piece has 3 octets.
    { name: "shorter than its first chunk", length: 2, turns: 0 },
    { name: "shorter than its first of two delayed chunks", length: 2, turns: 1 },
    { name: "shorter than its bytes", length: 4, turns: 0 },
    { name: "longer than its bytes", length: 6, turns: 0 },
  ])("with a Content-Length $name gets status 500", async (row) => {
    const faults: unknown[] = [];
    await using files = await startFiles(http2, inTwoPieces(row), { onFault: (fault) => faults.push(fault) });
    const { httpStatus, header, body } = await ask(files, ["GET", "/downloads/a"]);
    expect([httpStatus, fieldValue(header, "content-type"), String(body)]).toEqual([500, "application/json", record]);
    expect([fieldValue(header, "content-length"), faults.length]).toEqual([String(record.length), 1]);
  });

  test.each(["GET", "HEAD"])("gets status 500 for %s if a single chunk exceeds its Content-Length", async (method) => {
    await using files = await startFiles(
      http2,
      {
        async *download(_, { responseHeader }) {
          responseHeader.set("content-length", "2");
          yield { data: bytes };
        },
      },
      { onFault: () => undefined },
    );
    expect((await ask(files, [method, "/downloads/a"])).httpStatus).toBe(500);
  });

  test.each(["five", "-1", "1e1", "5, 5", "9".repeat(16)])(
    "is sent without the invalid Content-Length %j of the handler",
    async (length) => {
      await using files = await startFiles(http2, inTwoPieces({ length, turns: 1 }));
      const answer = await ask(files, ["GET", "/downloads/a"]);
      expect([answer.httpStatus, fieldValue(answer.header, "content-length")]).toEqual([200, undefined]);
      expect(answer.body).toEqual(bytes);
    },
  );

  test.each([
    { name: "shorter than its bytes", length: 4, turns: 1 },
    { name: "longer than its bytes", length: 6, turns: 1 },
  ])("with a Content-Length $name is truncated once its header is sent", async (row) => {
    await using files = await startFiles(http2, inTwoPieces(row), { onFault: () => undefined });
    await expect(ask(files, ["GET", "/downloads/a"]).then(toWhole)).rejects.toThrow();
  });

  test("is streamed without separators between chunks", async () => {
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

  test("is received in chunks, the first with content type and URL fields", async () => {
    const { kept, upload } = keeper();
    await using files = await startFiles(http2, { upload });
    const target = ["PUT", "/uploads/a%2Fb?note=n"] as const;
    const type: Field = ["content-type", "c/d"];
    using sent = await openUpload(files, version, target, [type]);
    // Each piece reaches the handler before the next one is sent.
    for (let pieces = 1; pieces <= 3; pieces += 1) {
      sent.write(bytes);
      await expect.poll(() => kept.length, { interval: 1 }).toBe(pieces);
    }
    sent.end();
    const { body, httpStatus } = await sent.readResponse();
    const whole = { name: "a/b", note: "n", contentType: "c/d" };
    expect([httpStatus, JSON.parse(body.toString())]).toEqual([200, { ...whole, length: "15" }]);
    const further = { name: "", note: "", contentType: "", data: bytes };
    expect(kept).toEqual([{ ...whole, data: bytes }, further, further]);
  });

  test.each([
    { name: "an empty upload", body: Buffer.of(), header: [], lengths: [0] },
    { name: "an upload over the message limit", body: Buffer.alloc(25, "x"), header: [], lengths: [10, 10, 5] },
    { name: "a gzip upload", body: gzipSync("abc"), header: [["content-encoding", "gzip"] as const], lengths: [3] },
  ])("from $name reaches the handler in chunks", async ({ body, header, lengths }) => {
    const { kept, upload } = keeper();
    await using files = await startFiles(http2, { upload }, { readMaxBytes: 10 });
    expect((await ask(files, ["PUT", "/uploads/a"], [["content-type", "c/d"], ...header], body)).httpStatus).toBe(200);
    expect(kept.map(({ data }) => data.byteLength)).toEqual(lengths);
    expect(kept[0]).toMatchObject({ name: "a", contentType: "c/d" });
  });

  test("is streamed in both directions concurrently", async () => {
    await using files = await startFiles(http2, {
      async *pipe(pieces: AsyncIterable<HttpBody>) {
        for await (const { contentType, data } of pieces) yield { contentType, data };
      },
    });
    const answer = await ask(files, ["POST", "/pipe"], [["content-type", "c/d"]], bytes);
    expect([answer.httpStatus, fieldValue(answer.header, "content-type"), answer.body]).toEqual([200, "c/d", bytes]);
  });

  test("gets an error response if the handler fails before anything is sent", async () => {
    await using files = await startFiles(http2, {
      async *download(_, { responseHeader }) {
        responseHeader.set("content-length", "5");
        responseHeader.set("etag", '"1"');
        yield { contentType: "a/b", data: bytes };
        throw new ConnectError("gone", Code.NotFound);
      },
    });
    const { httpStatus, header, body } = await ask(files, ["GET", "/downloads/a"]);
    expect([httpStatus, JSON.parse(body.toString()).message]).toEqual([404, "gone"]);
    expect(["content-type", "etag"].map((name) => fieldValue(header, name))).toEqual(["application/json", '"1"']);
  });

  test("is truncated if the handler fails after its first chunk is sent", async () => {
    await using files = await startFiles(http2, {
      async *download({ name }) {
        if (name === "later") yield { data: bytes };
        await new Promise((resolve) => setTimeout(resolve, 20));
        throw new ConnectError("gone", Code.NotFound);
      },
    });
    // The body is truncated in a chunk over HTTP/1.1, the stream is reset over HTTP/2, and the body fails over Fetch.
    const cut = ask(files, ["GET", "/downloads/later"]);
    if (version === "2") await expect(cut).resolves.toMatchObject({ resetCode: ErrorCode.internalError });
    else await expect(cut).rejects.toThrow();
    expect((await ask(files, ["GET", "/downloads/at-once"])).httpStatus).toBe(404);
  });
});

test("the OpenAPI document allows any content type for google.api.HttpBody", () => {
  const { paths } = createOpenApi([FileService], { info: { title: "Files", version: "1" } });
  const any = { "application/octet-stream": { schema: { type: "string", format: "binary" } } };
  expect(paths["/files/{name}"]?.get?.responses["200"]?.content).toEqual(any);
  expect(paths["/downloads/{name}"]?.get?.responses["200"]?.content).toEqual(any);
  expect(paths["/files/{name}"]?.put?.requestBody?.content).toEqual(any);
  expect(paths["/uploads/{name}"]?.put?.requestBody?.content).toEqual(any);
  expect(paths["/echo"]?.post?.requestBody?.content).toEqual(any);
});
