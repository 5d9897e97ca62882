import { expect, test } from "vitest";
import { toTerminalLine } from "../../src/logs/log.ts";

const line = { level: "info", time: "2026-01-31T12:34:56.789Z", msg: "listening" };
const call = {
  ...line,
  requestId: "abc-1",
  procedure: "/orders.v1.OrderService/DeleteOrder",
  protocol: "rest",
  httpMethod: "DELETE",
  path: "/orders/7",
  httpStatus: 204,
  code: "OK",
  durationMs: 1.234,
  peer: "192.0.2.1",
  msg: "call",
};

test.each<{ name: string; given: object; want: string }>([
  { name: "a line without fields", given: line, want: "12:34:56.789 info  listening\n" },
  {
    name: "fields",
    given: { ...line, port: 8080, tls: false, store: "sqlite", issuer: "a b" },
    want: '12:34:56.789 info  listening port=8080 tls=false store=sqlite issuer="a b"\n',
  },
  {
    name: "a call",
    given: call,
    want: "12:34:56.789 info  204 OK                  1.2 ms DELETE /orders/7 requestId=abc-1 protocol=rest peer=192.0.2.1\n",
  },
  {
    name: "a probe without a code",
    given: { ...call, code: undefined, httpMethod: "GET", path: "/livez", httpStatus: 200 },
    want: "12:34:56.789 info  200 -                   1.2 ms GET /livez requestId=abc-1 protocol=rest peer=192.0.2.1\n",
  },
  {
    name: "an error with its cause and stack",
    given: {
      ...line,
      level: "error",
      msg: "fault",
      err: {
        type: "Error",
        message: "no",
        stack: "Error: no\n    at a.ts:1",
        cause: { type: "string", message: "soil" },
      },
    },
    want: "12:34:56.789 error fault\n  Error: no\n      at a.ts:1\n  caused by\n  string: soil\n",
  },
  {
    name: "an error whose cause is null",
    given: { ...line, err: { stack: "Error: no", cause: null } },
    want: "12:34:56.789 info  listening\n  Error: no\n",
  },
  { name: "an error that is a string", given: { ...line, err: "no" }, want: "12:34:56.789 info  listening\n" },
  {
    name: "objects, quotes, equals signs and empty fields",
    given: { ...line, object: { a: "b c" }, quoted: 'a"b', equation: "a=b", empty: "", none: null },
    want: '12:34:56.789 info  listening object={"a":"b c"} quoted="a\\"b" equation="a=b" empty= none=null\n',
  },
  {
    name: "control characters in messages, paths, stacks and above U+FFFF",
    given: { ...call, path: "/\u2028\u{e0001}", err: { stack: "a\u001b" } },
    want: "12:34:56.789 info  204 OK                  1.2 ms DELETE /\\u2028\\ue0001 requestId=abc-1 protocol=rest peer=192.0.2.1\n  a\\u001b\n",
  },
  { name: "a line without a message", given: { ...line, msg: undefined, a: 1 }, want: "12:34:56.789 info   a=1\n" },
  { name: "an unknown level", given: { ...line, level: "harvest" }, want: "12:34:56.789 harvest listening\n" },
  {
    name: "a field with control and bidirectional characters",
    given: { ...line, subject: "\u001b[2J\u009b\u202e", reason: "a\nb" },
    want: '12:34:56.789 info  listening subject=\\u001b[2J\\u009b\\u202e reason="a\\nb"\n',
  },
])("toTerminalLine formats $name in columns", ({ given, want }) => {
  expect(toTerminalLine(`${JSON.stringify(given)}\n`, false)).toBe(want);
});

test.each([
  { level: "fatal", painted: "\u001b[31m\u001b[1mfatal\u001b[22m\u001b[39m" },
  { level: "error", painted: "\u001b[31merror\u001b[39m" },
  { level: "warn", painted: "\u001b[33mwarn \u001b[39m" },
  { level: "info", painted: "\u001b[32minfo \u001b[39m" },
  { level: "debug", painted: "\u001b[36mdebug\u001b[39m" },
  { level: "trace", painted: "\u001b[90mtrace\u001b[39m" },
])("toTerminalLine colours the level $level without changing the text", ({ level, painted }) => {
  const coloured = toTerminalLine(JSON.stringify({ ...line, level, port: 1 }), true);
  expect(coloured).toContain(painted);
  // oxlint-disable-next-line no-control-regex
  expect(coloured.replaceAll(/\u001b\[\d+m/g, "")).toBe(`12:34:56.789 ${level.padEnd(5)} listening port=1\n`);
});

test("toTerminalLine does not colour an empty column", () => {
  expect(toTerminalLine(JSON.stringify(line), true)).toMatch(/ listening\n$/);
});
