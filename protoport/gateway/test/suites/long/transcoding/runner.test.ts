import { writeFileSync } from "node:fs";
import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
// oxfmt-ignore
import { type Case, createHttp1Exchange, createHttp2Exchange, type Need, readCases, readKnownFailing, type Result, run,
  writeReport } from "../../../../../conformance/runner/index.ts";
import { createGateway } from "../../../../src/index.ts";
import { listenOnLoopback, type LoopbackServer, startOnLoopback } from "@protoport/testing/http";
import { createTempFolder, projectFolder, runProgram, waitLimitMs } from "@protoport/testing/process";
import { echoOptions } from "../../../../../testing/src/transcoding/echo-backend.ts";
import { readStream } from "../../../../../conformance/runner/stream-forms.ts";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const cases = new Map(readCases().map((each) => [each.id, each]));
const some = (...ids: readonly string[]): readonly Case[] => ids.flatMap((id) => cases.get(id) ?? []);

interface RunMore {
  readonly timeoutMs?: number;
  readonly knownFailing?: readonly string[];
  readonly without?: readonly Need[];
  readonly http2?: boolean;
}

async function runAgainst(url: string, each: readonly Case[], more: RunMore = {}): Promise<readonly Result[]> {
  const { timeoutMs = waitLimitMs, knownFailing = [], without = [], http2 = false } = more;
  const exchange = http2 ? createHttp2Exchange(new URL(url)) : createHttp1Exchange(new URL(url));
  const results: Result[] = [];
  const options = { exchange, timeoutMs, without, knownFailing, restartLimitMs: 1 };
  for await (const result of run(each, options)) results.push(result);
  return results;
}

/** Starts a server on plain sockets. @param onSocket - handles each connection */
const serve = async (onSocket: (socket: Socket) => void): Promise<LoopbackServer> =>
  await startOnLoopback(createServer(onSocket));

function sending(...pieces: readonly string[]): (socket: Socket) => void {
  return (socket) => socket.once("data", () => socket.end(pieces.join("")));
}

/** Sends data without an end, with backpressure. */
function endless(socket: Socket, head: string, text = "x"): void {
  const piece = text.repeat(64 * 1024);
  const more = (): void => {
    while (socket.writable && socket.write(piece));
  };
  socket.once("data", () => {
    socket.write(head);
    socket.on("drain", more);
    more();
  });
}

const echo = JSON.stringify({ rpc: "Query", message: "{}" });
const ok = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

test.each<[what: string, server: (socket: Socket) => void, says: string]>(
  // oxfmt-ignore
  [
    ["closes each connection", (socket) => socket.destroy(), "closed"],
    ["closes each connection after the request", sending(""), "before a response"],
    ["speaks another protocol", sending("220 mail.example ESMTP\r\n"), "does not speak HTTP"],
    ["sends an invalid status", sending("HTTP/1.1 abc\r\n\r\n"), "invalid status line"],
    ["sends an invalid header line", sending("HTTP/1.1 200 OK\r\nx\r\n\r\n"), "invalid header line"],
    ["sends a header without an end", (s) => endless(s, ok), "header of more than 65536 bytes"],
    ["sends interim responses without an end", (s) => endless(s, "", "HTTP/1.1 103 \r\n\r\n"),
      "interim responses of more"],
    ["sends an endless body", (s) => endless(s, `${ok}\r\n`), "more than 1048576 bytes"],
    ["announces and sends 100 MB", (s) => endless(s, `${ok}content-length: 100000000\r\n\r\n`),
      "more than 1048576 bytes"],
    ["sends invalid chunks", sending(`${ok}transfer-encoding: chunked\r\n\r\nzz\r\n`), "invalid chunk"],
    ["announces an invalid length", sending(`${ok}content-length: 1e3\r\n\r\n`), "an invalid Content-Length"],
    ["sends two different Content-Length fields",
      sending(`${ok}content-length: ${echo.length}\r\ncontent-length: 5\r\n\r\n${echo}`),
      "two different values of Content-Length"],
    ["truncates its response after valid JSON", sending(`${ok}content-length: 500\r\n\r\n${echo}`),
      "truncated after 30 bytes"],
    ["truncates its response between chunks",
      sending(`${ok}transfer-encoding: chunked\r\n\r\n${echo.length.toString(16)}\r\n${echo}\r\n`),
      "truncated after 30 bytes"],
  ],
)("if a server %s, its conformance case fails", async (_, server, says) => {
  await using served = await serve(server);
  const [result] = await runAgainst(served.baseUrl, some("query.none"));
  expect(result?.outcome).toBe("fail");
  expect(result?.problems.join()).toContain(says);
});

test.each([
  ["deeply nested objects", "response.return.nothing", `${'{"a":'.repeat(90_000)}{}${"}".repeat(90_000)}`],
  ["deeply nested objects", "stream.count.1", `${'{"a":'.repeat(90_000)}{}${"}".repeat(90_000)}`],
  ["an unterminated string", "stream.count.1", '"\\'.repeat(500_000)],
])("a body with %s fails the case %s without a crash", async (_what, id, body) => {
  await using served = await serve(sending(`${ok}\r\n${body}`));
  expect((await runAgainst(served.baseUrl, some(id))).map(({ outcome }) => outcome)).toEqual(["fail"]);
});

test("a body in the response to HEAD fails the case", async () => {
  await using served = await serve(sending(`${ok}content-length: 2\r\n\r\n{}`));
  const [result] = await runAgainst(served.baseUrl, some("method.head"));
  expect(result?.problems).toEqual(['expected no body, got "{}"']);
});

test("special characters in responses are escaped in JUnit and Markdown reports", async () => {
  await using served = await serve(sending(`HTTP/1.1 500 \r\n\r\n]]>\`<b>`));
  const results = await runAgainst(served.baseUrl, some("query.none"));
  expect(writeReport(results, "junit")).toContain("]]&gt;`&lt;b&gt;");
  expect(writeReport(results, "md")).toContain(`: \`expected the status 200, got 500 with "]]>'<b>"\`\n`);
});

test("a hanging server fails each case by its timeout", async () => {
  await using served = await serve(() => undefined);
  const results = await runAgainst(served.baseUrl, some("query.none", "query.empty"), { timeoutMs: 50 });
  const want = [["the server did not respond within 50 ms"], ["the server did not respond within 50 ms"]];
  expect(results.map(({ problems }) => problems)).toEqual(want);
});

test.each<[what: string, respond: (stream: ServerHttp2Stream) => void, says: string, timeoutMs?: number]>(
  // oxfmt-ignore
  [
    ["hangs", () => undefined, "did not respond within 50 ms", 50],
    ["hangs after a header", (stream) => stream.respond(), "did not respond within 50 ms", 50],
    ["closes the stream without a response", (stream) => stream.close(), "the stream before a response"],
    ["sends 100 MB", (stream) => {
        stream.respond();
        stream.end(Buffer.alloc(100_000_000));
      }, "more than 1048576 bytes"],
    ["sends a body that differs from its Content-Length", (stream) => {
        stream.respond({ "content-length": 500 });
        stream.end(echo);
      }, "truncated after"],
  ],
)("an HTTP/2 server that %s fails its case", async (_what, respond, says, timeoutMs = waitLimitMs) => {
  const server = createHttp2Server();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => undefined);
    respond(stream);
  });
  await using served = await startOnLoopback(server);
  const [result] = await runAgainst(served.baseUrl, some("query.none"), { http2: true, timeoutMs });
  expect(result?.outcome).toBe("fail");
  expect(result?.problems.join()).toContain(says);
});

test("a case over HTTP/2 fails on a server that supports only HTTP/1.1", async () => {
  await using served = await serve(sending(`${ok}content-length: ${echo.length}\r\n\r\n`, echo));
  const [result] = await runAgainst(served.baseUrl, some("query.none"), { http2: true });
  expect(result?.problems.join()).toContain("the server closed the connection");
});

test("a response shorter than its Content-Length fails the case", async () => {
  const [fileCase] = some("file.get.text");
  if (fileCase === undefined) throw new Error("no such case");
  await using served = await serve(
    sending("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 50\r\n\r\nhello"),
  );
  const [result] = await runAgainst(served.baseUrl, [fileCase]);
  expect(result?.outcome).toBe("fail");
});

const rest = `${(echo.length - 5).toString(16)}\r\n${echo.slice(5)}`;
const inChunks = `5;x=1\r\n${echo.slice(0, 5)}\r\n${rest}\r\n0\r\n\r\n`;

test.each([
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n", echo],
  ["no reason phrase", "HTTP/1.1 200\r\n\r\n", echo],
  ["a preceding interim response", `HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n${ok}\r\n`, echo],
  ["a chunked body", `${ok}transfer-encoding: chunked\r\n\r\n`, inChunks],
  ["a body longer than its Content-Length", `${ok}Content-Length: ${echo.length}\r\n\r\n`, `${echo}HTTP/1.1 500`],
])("a response with %s is accepted by the runner", async (_what, head, body) => {
  await using served = await serve(sending(head, body));
  const [result] = await runAgainst(served.baseUrl, some("query.none"));
  expect(result?.problems).toEqual([]);
});

test.each([false, true])(
  "cases fail immediately if no server listens (HTTP/2: %s)",
  async (http2) => {
    const results = await runAgainst("http://127.0.0.1:9", some("query.none"), { http2 });
    expect(results[0]?.problems.join()).toContain("the server cannot be reached");
    expect(results[0]?.problems).toContain("and has not accepted connections since");
  },
  20_000,
);

test("a case that crashes the server is reported as the cause", async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      server.close(() => resolve());
      socket.destroy();
    });
  });
  const results = await runAgainst(await listenOnLoopback(server), some("query.none", "query.empty"));
  await closed;
  expect(results.map(({ problems }) => problems.length)).toEqual([2, 1]);
  expect(results[0]?.problems[1]).toBe("and has not accepted connections since");
});

test('a known failure that passes is reported as "fixed"', async () => {
  await using served = await serve(sending(`${ok}\r\n${echo}`));
  const known = readKnownFailing("# all of it\n\npath.string.* # because\nquery.none\n");
  const results = await runAgainst(served.baseUrl, some("path.string.plain", "query.none", "query.nested.deep"), {
    knownFailing: known,
  });
  expect(results.map(({ outcome }) => outcome)).toEqual(["known", "fixed", "fail"]);
});

test("the runner skips a case that needs an unsupported feature", async () => {
  await using served = await serve((socket) => socket.destroy());
  const results = await runAgainst(served.baseUrl, some("stream.count.1"), { without: ["streams"] });
  expect(results.map(({ outcome }) => outcome)).toEqual(["not run"]);
});

test("every report format shows that a case failed", async () => {
  await using served = await serve(sending(`${ok}\r\n${echo}`));
  const results = await runAgainst(served.baseUrl, some("query.none", "query.nested.deep"));
  const want = 'nested: expected {"inner":{"text":"a"}}, got nothing';
  expect(writeReport(results, "text")).toContain(
    `query.nested.deep (must): nested.inner.text=a: fields of messages\n  GET /v1/query?nested.inner.text=a\n  ${want}\n  by google/api/http.proto`,
  );
  expect(writeReport(results, "md")).toContain("| queries | 1 | 0 | 1 | 0 | 0 | 0 |");
  expect(JSON.parse(writeReport(results, "json"))).toMatchObject([
    { id: "query.none", outcome: "pass" },
    { id: "query.nested.deep", outcome: "fail", problems: [want] },
  ]);
  const junit = writeReport(results, "junit");
  expect(junit).toContain('<testsuite name="queries" tests="2" failures="1" skipped="0">');
  expect(junit).toContain("nested: expected {&quot;inner&quot;");
});

async function command(
  ...args: readonly string[]
): Promise<{ readonly exitCode: number | null; readonly text: string }> {
  const { exitCode, stdout, stderr } = await runProgram(process.execPath, [
    join(projectFolder, "protoport/conformance/runner/main.ts"),
    ...args,
  ]);
  return { exitCode, text: stdout + stderr };
}

test.each([
  { args: [], says: "--base must be the URL" },
  { args: ["--base", "ftp://a"], says: 'such as http://127.0.0.1:8080, got "ftp://a"' },
  { args: ["--base", "http://127.0.0.1:9", "--only", "nope"], says: '--only: no case matches "nope"' },
  { args: ["--base", "http://127.0.0.1:9", "--only", "query.*", "--only", "nope"], says: 'no case matches "nope"' },
  { args: ["--base", "http://127.0.0.1:9", "--without", "luck"], says: "--without must be one of verbs" },
  { args: ["--base", "http://127.0.0.1:9", "--report", "xml"], says: "--report must be one of text" },
  { args: ["--base", "http://127.0.0.1:9", "--timeout", "soon"], says: "--timeout must be between 1 and 9999999" },
  { args: ["--base", "http://127.0.0.1:9", "--known-failing", "/nowhere"], says: "cannot read /nowhere" },
  { args: ["--bass", "http://127.0.0.1:9"], says: "Unknown option '--bass'" },
])("the arguments $args are rejected by the command", async ({ args, says }) => {
  const { exitCode, text } = await command(...args);
  expect(text).toContain(says);
  expect(exitCode).toBe(2);
});

test.each([
  { what: "hangs", server: () => undefined, timeout: "50", says: "the server did not respond within 50 ms" },
  { what: "does not speak HTTP", server: sending("220 mail.example ESMTP\r\n"), says: "does not speak HTTP" },
  { what: "serves something else", server: sending(`${ok}\r\n{"a":1}`), says: "expected the Echo of Query, got" },
])("a server that $what is rejected by the command", async ({ server, timeout = "30000", says }) => {
  await using served = await serve(server);
  const { exitCode, text } = await command("--base", served.baseUrl, "--timeout", timeout, "--only", "path.string.*");
  expect(text).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/ does not serve the echo contract: GET \/v1\/query: /);
  expect(text).toContain(says);
  expect(exitCode).toBe(2);
});

test("the command exits with 0 if all failures are known", async () => {
  await using served = await serve(sending(`${ok}\r\n${echo}`));
  const args = ["--base", served.baseUrl, "--only", "path.string.plain", "--only", "query.none"];
  expect((await command(...args)).exitCode).toBe(1);
  writeFileSync(folder.file("known.txt"), "path.string.plain # it knows one RPC\n");
  const { exitCode, text } = await command(...args, "--known-failing", folder.file("known.txt"));
  expect(text).toContain("must: 1 passed, 0 by an alternative, 0 failed, 1 known");
  expect(exitCode).toBe(0);
});

test("the command adds the base URL's path to request paths", async () => {
  const gateway = createGateway({ ...echoOptions, requestPathPrefix: "/api" });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  for (const more of [[], ["--http2"]]) {
    const { text } = await command("--base", `http://127.0.0.1:${port}/api/`, "--only", "path.string.*", ...more);
    expect(text).toMatch(/must: \d\d passed, 0 by an alternative, 0 failed/);
  }
  await gateway.close();
});

const items = [{ text: '"}\\' }, { text: "{[" }];
const [first, second] = items.map((item) => JSON.stringify(item));
const error = '{"code":13,"message":"as asked"}';
const failedEvents = `data: ${first}\n\ndata: ${second}\n\nevent: error\ndata: ${error}\n\n`;

test.each([
  { form: "lines", body: `${first}\n${second}\n` },
  { form: "values without separators", body: `${first}${second}` },
  { form: "an array", body: `[${first},${second}]` },
  { form: "envelopes", body: `{"result":${first}}\n{"result":${second}}\n` },
  { form: "events", body: `data: ${first}\n\n: comment\n\ndata:${second}\n\n`, type: "text/event-stream" },
  { form: "events with CRLF", body: `data: ${first}\r\n\r\ndata: ${second}\r\n\r\n`, type: "text/event-stream" },
  { form: "lines with an error at the end", body: `${first}\n${second}\n{"error":${error}}\n`, hasError: true },
  { form: "lines with a google.rpc.Status at the end", body: `${first}\n${second}\n${error}\n`, hasError: true },
  { form: "truncated lines", body: `${first}\n${second}\n`, isComplete: false, hasError: true },
  { form: "events with an error at the end", body: failedEvents, type: "text/event-stream", hasError: true },
])(
  "a stream as $form is parsed by readStream()",
  ({ body, type = "application/json", isComplete = true, hasError = false }) => {
    const response = { status: 200, header: [["content-type", type] as const], body: Buffer.from(body), isComplete };
    expect(readStream(response)).toEqual({ items, hasError });
  },
);
