import { describe, expect, test } from "vitest";
import { createGateway, createOpenApi, parseHttpRules, type RestOptions } from "../../../src/gateway/index.ts";
import { partHeaderMaxBytes, readParts } from "../../../src/gateway/rest/multipart-parts.ts";
import { FileService } from "../../gen/files/v1/files_pb.ts";
import { KitchenSink } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { exchangeFetch } from "../../support/carriers/fetch.ts";
import { createSink, type SinkAnswer } from "../../support/gateway/ask-sink.ts";
import { kitchenSinkOptions } from "../../support/gateway/kitchen-sink.ts";

// multipartForms of rest.service.

const putFile = "files.v1.FileService.PutFile";
// Bodies that are a field and the rest, the request around an HttpBody, and an HttpBody of which the path sets a part.
const rules = parseHttpRules(
  JSON.stringify({
    rules: [
      {
        selector: putFile,
        put: "/files/{name}",
        body: "file",
        additionalBindings: [
          { post: "/files", body: "*" },
          { post: "/put", body: "file" },
          { post: "/types/{file.content_type}", body: "*" },
        ],
      },
    ],
  }),
);
const rest: RestOptions = { service: () => ({ multipartForms: true }), rules };
const type = "multipart/form-data; boundary=b";

/** Returns parts as a form with the boundary `b`; each is its header, an empty line, and its content. */
function formOf(...parts: readonly string[]): string {
  return `${parts.map((part) => `--b\r\n${part}\r\n`).join("")}--b--\r\n`;
}

function field(name: string, value: string): string {
  return `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`;
}

function file(name: string, content: string, contentType?: string): string {
  const typeField = contentType === undefined ? "" : `Content-Type: ${contentType}\r\n`;
  return `Content-Disposition: form-data; name="${name}"; filename="f.txt"\r\n${typeField}\r\n${content}`;
}

type Given = { readonly name: string; readonly type: string | undefined; readonly data: string };

function latin1(data: Uint8Array | undefined): string {
  return Buffer.from(data ?? []).toString("latin1");
}

/** Sends a body to the service of files, and returns what its handler was given, or the error. */
async function send(
  request: string,
  body: string | Uint8Array,
  { contentType = type, options = rest }: { readonly contentType?: string; readonly options?: RestOptions } = {},
): Promise<Given | { readonly httpStatus: number; readonly message: unknown }> {
  let given: Given | undefined;
  const { fetch } = createGateway({
    routes: (router) =>
      router.service(FileService, {
        putFile({ name, file: sent }) {
          given = { name, type: sent?.contentType, data: latin1(sent?.data) };
          return {};
        },
        echo(sent) {
          given = { name: "", type: sent.contentType, data: latin1(sent.data) };
          return sent;
        },
      }),
    rest: options,
  });
  const [httpMethod = "", path = ""] = request.split(" ");
  const header = [["content-type", contentType]] as const;
  const answer = await exchangeFetch(fetch, { httpMethod, path, header, body: Buffer.from(body) });
  if (given !== undefined) return given;
  return { httpStatus: answer.httpStatus, message: JSON.parse(String(answer.body)).message };
}

/** Sends a form to the kitchen sink, which has no files. */
function create(body: string, options: RestOptions = rest, contentType = type): Promise<SinkAnswer> {
  return createSink({ ...options, rules: [] })("POST /v1/sinks", body, contentType);
}

describe("a file", () => {
  test.each([
    [
      "is the field of the rule",
      "PUT /files/a",
      [file("file", "x\r\n--c", "image/png")],
      { name: "a", type: "image/png", data: "x\r\n--c" },
    ],
    [
      "is a field of the body, beside others",
      "POST /files",
      [field("name", "a"), file("file", "x", "image/png")],
      { name: "a", type: "image/png", data: "x" },
    ],
    [
      "comes before its fields",
      "POST /put",
      [file("file", "x", "image/png"), field("name", "a")],
      { name: "a", type: "image/png", data: "x" },
    ],
    [
      "comes with a query",
      "POST /put?name=a",
      [file("file", "x", "image/png")],
      { name: "a", type: "image/png", data: "x" },
    ],
    [
      "is the whole message, whatever its name",
      "POST /echo",
      [file("upload", "x", "image/png")],
      { name: "", type: "image/png", data: "x" },
    ],
    [
      "without a type is bytes",
      "POST /put",
      [file("file", "x")],
      { name: "", type: "application/octet-stream", data: "x" },
    ],
    [
      "without a type and a name is text",
      "POST /put",
      [field("file", "x")],
      { name: "", type: "text/plain", data: "x" },
    ],
    ["may be empty", "POST /put", [file("file", "", "text/csv")], { name: "", type: "text/csv", data: "" }],
    [
      "is none where nobody has chosen one",
      "POST /put",
      [
        'Content-Disposition: form-data; name="file"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n',
        file("file", "x", "a/b"),
      ],
      { name: "", type: "a/b", data: "x" },
    ],
    [
      "has a name as .NET writes it",
      "POST /put",
      ["Content-Disposition: form-data; name=file; filename=a.txt; filename*=utf-8''a.txt\r\n\r\nx"],
      { name: "", type: "application/octet-stream", data: "x" },
    ],
    [
      "has a transfer encoding that changes nothing",
      "POST /put",
      [`Content-Transfer-Encoding: binary\r\n${file("file", "x", "a/b")}`],
      { name: "", type: "a/b", data: "x" },
    ],
    ["may be missing", "POST /put", [field("name", "a")], { name: "a", type: undefined, data: "" }],
  ])("%s", async (_, request, parts, given) => {
    expect(await send(request, formOf(...parts))).toEqual(given);
  });

  test("has all bytes as they are", async () => {
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, at) => at % 256));
    const body = Buffer.concat([Buffer.from(`--b\r\n${file("file", "", "a/b")}`), bytes, Buffer.from("\r\n--b--")]);
    expect(await send("POST /put", body)).toEqual({ name: "", type: "a/b", data: bytes.toString("latin1") });
  });

  test.each([
    {
      name: "of another type",
      options: rest,
      request: "POST /put",
      contentType: "multipart/mixed; boundary=b",
      given: { type: "multipart/mixed; boundary=b" },
    },
    {
      name: "where the path sets a part of it",
      options: { service: () => ({ multipartForms: true }) },
      request: "POST /echo",
      given: { name: "", data: "" },
      parts: [],
    },
  ])(
    "is read as it is $name",
    async ({ options, request, contentType = type, given, parts = [field("name", "a")] }) => {
      expect(await send(request, formOf(...parts), { options, contentType })).toMatchObject(given);
    },
  );

  test("is refused by default, and the option is named", async () => {
    expect(await send("POST /put", formOf(file("file", "a")), { options: { rules }, contentType: type })).toEqual({
      httpStatus: 415,
      message: expect.stringMatching(
        /send the bytes alone, with --data-binary of curl; the option multipartForms accepts forms$/,
      ),
    });
  });

  test("makes a message in a time and number of steps in proportion to its bytes", () => {
    const stepsOf = (filling: string): number => {
      const bytes = Buffer.from(formOf(file("file", filling)));
      let steps = 0;
      const counted = new Proxy<Uint8Array>(bytes, {
        get(target, key) {
          steps++;
          if (key === "indexOf") {
            return (byte: number, from: number): number => {
              const at = bytes.indexOf(byte, from);
              steps += (at < 0 ? bytes.length : at) - from;
              return at;
            };
          }
          const value: unknown = Reflect.get(target, key, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      expect(readParts(counted, type)).toHaveLength(1);
      return steps / bytes.length;
    };
    for (const filling of ["\r\n--", "\r", "\r\n--\r\n-", "x", "\r\n\r\n"]) {
      expect(stepsOf(filling.repeat(20_000)), JSON.stringify(filling)).toBeLessThan(4);
    }
  });
});

describe("fields", () => {
  test.each([
    {
      parts: [field("f_int64", "9007199254740993"), field("fString", " a+b ")],
      sink: { fInt64: "9007199254740993", fString: " a+b " },
    },
    {
      parts: [field("tags", "a"), field("tags", "b"), field("nested.text", "x")],
      sink: { tags: ["a", "b"], nested: { text: "x" } },
    },
    { parts: ["content-disposition: Form-Data;name=f_string\r\nX-Other: 1\r\n\r\nä"], sink: { fString: "ä" } },
    {
      parts: ['Content-Disposition: form-data; name="f_string"\r\nContent-Type: text/plain; charset=UTF-8\r\n\r\na'],
      sink: { fString: "a" },
    },
    { parts: [field("_charset_", "utf-8"), field("f_string", "\ufeffa")], sink: { fString: "\ufeffa" } },
    { parts: [field("f_string", "a\r\n\r\n--bb")], sink: { fString: "a\r\n\r\n--bb" }, boundary: "bbb" },
    { parts: [], sink: {} },
  ])("$parts", async ({ parts, sink, boundary = "b" }) => {
    const body = formOf(...parts).replaceAll(/^--b(?=--\r|\r)/gm, `--${boundary}`);
    expect(await create(body, rest, `multipart/form-data; boundary=${boundary}`)).toEqual({ sink });
  });

  test.each([
    { name: "labels[a%22b]", key: 'a"b' },
    { name: String.raw`labels[a\"b]`, key: 'a"b' },
    { name: String.raw`labels[a\\b]`, key: String.raw`a\b` },
    { name: String.raw`labels[a\b]`, key: String.raw`a\b` },
    { name: "labels[%0D%0A]", key: "\r\n" },
    { name: "labels[a%20b]", key: "a%20b" },
    { name: "labels[__proto__]", key: "__proto__" },
    { name: "labels[ä;b=c]", key: "ä;b=c" },
  ])("have names as browsers and others write them: $name", async ({ name, key }) => {
    const answer = await create(formOf(field(name, "1")), {
      service: () => ({ multipartForms: true, mapsInQuery: true }),
    });
    expect(answer).toEqual({ sink: { labels: Object.fromEntries([[key, "1"]]) } });
  });

  test("give a PATCH its update mask", async () => {
    const options = { service: () => ({ multipartForms: true, updateMaskFromBody: true }) };
    const { fetch } = createGateway({ ...kitchenSinkOptions, rest: options });
    const body = Buffer.from(formOf(field("theme", "a"), field("place.room", "b")));
    const header = [["content-type", type]] as const;
    const answer = await exchangeFetch(fetch, { httpMethod: "PATCH", path: "/v1/shelves/1", header, body });
    expect(JSON.parse(String(answer.body))).toMatchObject({ updateMask: "place.room,theme" });
  });

  test("may be unknown where the service is lenient", async () => {
    const seen: unknown[] = [];
    const options: RestOptions = {
      service: () => ({ multipartForms: true, lenient: true }),
      onIgnored: (_, names) => void seen.push(names),
    };
    const parts = [field("x", "1"), file("y", "2"), field("f_string", "a")];
    expect(await create(formOf(...parts), options)).toEqual({ sink: { fString: "a" } });
    expect(seen).toEqual([["x", "y"]]);
  });
});

test.each([
  {
    name: "text before and behind",
    body: `before\r\n--c\n--b\n\r\n${formOf(field("f_string", "a"))}behind\r\n--b\r\n`,
  },
  { name: "white space behind a boundary", body: formOf(field("f_string", "a")).replaceAll("--b\r", "--b \t\r") },
  { name: "no line break at its end", body: formOf(field("f_string", "a")).trimEnd() },
])("$name is ignored", async ({ body }) => {
  expect(await create(body)).toEqual({ sink: { fString: "a" } });
});

test.each([
  "multipart/form-data; boundary=b",
  'Multipart/Form-Data ; charset=utf-8; Boundary="b"',
  "multipart/form-data;boundary=b;x=y",
])("the type may be %s", async (contentType) => {
  expect(await create(formOf(field("f_string", "a")), rest, contentType)).toEqual({ sink: { fString: "a" } });
});

test.each(["----WebKitFormBoundary7MA4YWxkTrZu0gW", "a b", "=_Part_1:x/y?", "b".repeat(70)])(
  "the boundary may be %s",
  async (boundary) => {
    const body = `--${boundary}\r\n${field("f_string", "a")}\r\n--${boundary}--`;
    const contentType = `multipart/form-data; boundary=${/ /.test(boundary) ? `"${boundary}"` : boundary}`;
    expect(await create(body, rest, contentType)).toEqual({ sink: { fString: "a" } });
  },
);

describe("a form is refused", () => {
  const needsBoundary = "not multipart/form-data: its type needs one boundary of RFC 2046 §5.1.1";
  test.each([
    { name: "without a boundary", contentType: "multipart/form-data" },
    { name: "with an empty boundary", contentType: "multipart/form-data; boundary=" },
    { name: "with an empty boundary in quotes", contentType: 'multipart/form-data; boundary=""' },
    { name: "with a boundary of 71 characters", contentType: `multipart/form-data; boundary=${"b".repeat(71)}` },
    { name: "with a boundary of 10 KB", contentType: `multipart/form-data; boundary=${"b".repeat(10_000)}` },
    { name: "with a boundary that ends with a space", contentType: 'multipart/form-data; boundary="b "' },
    { name: "with a boundary of other characters", contentType: "multipart/form-data; boundary=b{}" },
    { name: "with two boundaries", contentType: "multipart/form-data; boundary=b; boundary=c" },
  ])("$name", async ({ contentType }) => {
    expect(await create(formOf(), rest, contentType)).toEqual({ httpStatus: 400, message: needsBoundary });
  });

  const text = field("f_string", "a");
  test.each([
    ["that has no closing boundary", formOf(text).slice(0, -6), "it does not end with its boundary"],
    ["that has no boundary at all", "a", "it does not end with its boundary"],
    ["that has line feeds alone", formOf(text).replaceAll("\r", ""), "its boundary is followed"],
    ["whose boundary goes on", `--bc\r\n${text}\r\n--b--`, "its boundary is followed by something"],
    [
      "that has something behind what looks like its end",
      `--b\r\n${text}\r\n--b--x\r\n--b--`,
      "its boundary is followed by something",
    ],
    ["whose part has no header", formOf("\r\na"), "a part has no header that ends within 8192"],
    ["whose header does not end", formOf("X: 1\r\na"), "a part has no header that ends"],
    ["whose header ends in another part", formOf("X: 1", text), "a part has no header that ends"],
    ["of parts without bytes", "--b\r\n\r\n--b--", "a part has no header that ends"],
    ["with a header of 100 KB", formOf(`X: ${"x".repeat(100_000)}\r\n${text}`), "a part has no header"],
    ["with a header that is folded", formOf(`X: 1\r\n 2\r\n${text}`), "the header of a part is not"],
    ["with a header field twice", formOf(`content-disposition: form-data\r\n${text}`), "the header of a part"],
    ["with a name twice", formOf('Content-Disposition: form-data; name=a; name="b"\r\n\r\n'), "the header of a part"],
    [
      "with a name that does not end",
      formOf('Content-Disposition: form-data; name="a\r\n\r\n'),
      "the header of a part",
    ],
    ["with a part without a name", formOf("Content-Disposition: form-data\r\n\r\na"), "a part has no name"],
    ["with a part of another kind", formOf("Content-Disposition: attachment; name=a\r\n\r\na"), "a part has no name"],
    ["with a part that says nothing of itself", formOf("Content-Type: text/plain\r\n\r\na"), "a part has no name"],
    ["inside a form", formOf(`Content-Type: multipart/mixed; boundary=c\r\n${text}`), "a part has parts of its own"],
    [
      "with a transfer encoding",
      formOf(`Content-Transfer-Encoding: base64\r\n${text}`),
      "a part has a transfer encoding",
    ],
  ])("%s", async (_, body, message) => {
    const answer = await create(body);
    expect(answer).toEqual({
      httpStatus: 400,
      message: expect.stringContaining(`not multipart/form-data: ${message}`),
    });
  });

  test.each([
    ["with an unknown field", [field("__proto__", "1"), field("x", "1")], 'unknown form fields "__proto__", "x"'],
    ["with a field twice", [field("f_int64", "7"), field("fInt64", "7")], "is set more than once"],
    ["with a wrong value", [field("f_int64", "007")], 'form field "f_int64": "007" is not an int64'],
    [
      "with a field of another type",
      [`Content-Type: application/json\r\n${field("nested", "{}")}`],
      'form field "nested": its content type is not text/plain',
    ],
    [
      "with a field in another charset",
      [`Content-Type: text/plain; charset=latin1\r\n${text}`],
      "its content type is not text/plain in UTF-8",
    ],
    ["that says it is in another charset", [field("_charset_", "iso-8859-1")], '"_charset_": is not UTF-8'],
    ["with a file for a field that is none", [file("f_string", "a")], 'form field "f_string": is no file'],
    ["with 10,000 parts", Array.from({ length: 10_000 }, () => text), "a form has at most 1000 fields"],
    ["with 1,001 parts", Array.from({ length: 1001 }, () => field("tags", "")), "at most 1000 fields"],
  ])("%s", async (_, parts, message) => {
    expect(await create(formOf(...parts))).toEqual({ httpStatus: 400, message: expect.stringContaining(message) });
  });

  test("not with 1,000 parts", async () => {
    const parts = Array.from({ length: 1000 }, () => field("tags", ""));
    expect(await create(formOf(...parts))).toMatchObject({ sink: { tags: expect.arrayContaining([""]) } });
  });

  test("not with a header of 8 KiB", async () => {
    const header = (bytes: number): string => `X: ${"x".repeat(bytes - text.indexOf("\r\n\r\n") - 5)}\r\n${text}`;
    expect(await create(formOf(header(partHeaderMaxBytes)))).toEqual({ sink: { fString: "a" } });
    expect(await create(formOf(header(partHeaderMaxBytes + 1)))).toMatchObject({ httpStatus: 400 });
  });

  test("with text that is not UTF-8", async () => {
    const message = "not multipart/form-data: it has text that is not UTF-8";
    const sink = (part: string): Promise<SinkAnswer> =>
      createSink({ ...rest, rules: [] })("POST /v1/sinks", Buffer.from(formOf(part), "latin1"), type);
    expect(await sink(field("f_string", "é"))).toEqual({ httpStatus: 400, message });
    expect(await sink(field("é", "a"))).toEqual({ httpStatus: 400, message });
  });

  test.each([
    ["with two files", "POST /put", [file("file", "a"), file("file", "b")], '"file": is a second file'],
    ["with two files for a message", "POST /echo", [file("a", "a"), file("b", "b")], '"b": is a second file'],
    ["with a field of the path", "PUT /files/a", [field("name", "a")], '"name": is bound by the path'],
    [
      "with a field of the query",
      "POST /put?name=a",
      [field("name", "a")],
      'query parameter "name": is set more than once',
    ],
    [
      "with a part of a file",
      "POST /put",
      [field("file.content_type", "a/b")],
      '"file.content_type": is part of a file',
    ],
    ["with a file whose type the path has", "POST /types/a", [file("file", "a")], '"file": is bound by the path'],
    [
      "with a file whose type is none",
      "POST /put",
      [file("file", "a", "png")],
      '"file": its content type is no media type',
    ],
  ])("%s", async (_, request, parts, message) => {
    expect(await send(request, formOf(...parts))).toEqual({
      httpStatus: 400,
      message: expect.stringContaining(message),
    });
  });

  test.each([
    { name: "by default", options: {} },
    { name: "for a service that does not take it", options: { service: () => ({ multipartForms: false }) } },
  ])("with 415 $name", async ({ options }) => {
    expect(await createSink(options)("POST /v1/sinks", formOf(text), type)).toMatchObject({ httpStatus: 415 });
  });

  test("with the error of all bodies that are too large", async () => {
    const { fetch } = createGateway({
      ...kitchenSinkOptions,
      rest: { service: () => ({ multipartForms: true }) },
      readMaxBytes: 1000,
    });
    const header = [["content-type", type]] as const;
    const body = Buffer.from(formOf(field("f_string", "a".repeat(1000))));
    const answer = await exchangeFetch(fetch, { httpMethod: "POST", path: "/v1/sinks", header, body });
    expect(answer.httpStatus).toBe(413);
  });
});

test("a form is described beside JSON and bytes", () => {
  const info = { title: "t", version: "1" };
  const { paths } = createOpenApi([FileService, KitchenSink], {
    info,
    rest: { rules, service: () => ({ multipartForms: true, forms: true }) },
  });
  const binary = { type: "string", format: "binary", contentMediaType: "application/octet-stream" };
  const contentOf = (path: string, method: "post" | "put"): object => paths[path]?.[method]?.requestBody?.content ?? {};
  expect(contentOf("/files/{name}", "put")).toEqual({
    "application/octet-stream": { schema: { type: "string", format: "binary" } },
    "multipart/form-data": { schema: { type: "object", properties: { file: binary } } },
  });
  expect(contentOf("/files", "post")).toMatchObject({
    "application/json": {},
    "application/x-www-form-urlencoded": {},
    "multipart/form-data": { schema: { properties: { name: { type: "string" }, file: binary } } },
  });
  expect(contentOf("/echo", "post")).toMatchObject({
    "multipart/form-data": { schema: { properties: { file: binary } } },
  });
  expect(Object.keys(contentOf("/v1/sinks", "post"))).toEqual([
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
  ]);
});
