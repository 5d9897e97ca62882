import { expect, test } from "vitest";
import { toTerminalLine } from "../../src/logs/log.ts";

const line = { level: "info", time: "2026-01-31T12:34:56.789Z", msg: "listening" };
// oxfmt-ignore
const call = { ...line, requestId: "abc-1", procedure: "/orders.v1.OrderService/DeleteOrder", protocol: "rest",
  httpMethod: "DELETE", path: "/orders/7", httpStatus: 204, code: "OK", durationMs: 1.234, peer: "192.0.2.1",
  msg: "call" };

test.each<[name: string, given: object, want: string]>(
  // oxfmt-ignore
  [
    ["a line without fields", line, "12:34:56.789 info  listening\n"],
    ["fields", { ...line, port: 8080, tls: false, store: "sqlite", issuer: "a b" },
      '12:34:56.789 info  listening port=8080 tls=false store=sqlite issuer="a b"\n'],
    ["a call", call,
      "12:34:56.789 info  204 OK                  1.2 ms DELETE /orders/7 requestId=abc-1 protocol=rest peer=192.0.2.1\n"],
    ["a probe without a code", { ...call, code: undefined, httpMethod: "GET", path: "/livez", httpStatus: 200 },
      "12:34:56.789 info  200 -                   1.2 ms GET /livez requestId=abc-1 protocol=rest peer=192.0.2.1\n"],
    ["an error with its cause and stack",
      { ...line, level: "error", msg: "fault", err: { type: "Error", message: "no", stack: "Error: no\n    at a.ts:1",
        cause: { type: "string", message: "soil" } } },
      "12:34:56.789 error fault\n  Error: no\n      at a.ts:1\n  caused by\n  string: soil\n"],
    ["an error whose cause is null", { ...line, err: { stack: "Error: no", cause: null } },
      "12:34:56.789 info  listening\n  Error: no\n"],
    ["an error that is a string", { ...line, err: "no" }, "12:34:56.789 info  listening\n"],
    ["objects, quotes, equals signs and empty fields",
      { ...line, object: { a: "b c" }, quoted: 'a"b', equation: "a=b", empty: "", none: null },
      '12:34:56.789 info  listening object={"a":"b c"} quoted="a\\"b" equation="a=b" empty= none=null\n'],
    ["control characters in messages, paths, stacks and above U+FFFF",
      { ...call, path: "/\u2028\u{e0001}", err: { stack: "a\u001b" } },
      "12:34:56.789 info  204 OK                  1.2 ms DELETE /\\u2028\\ue0001 requestId=abc-1 protocol=rest peer=192.0.2.1\n  a\\u001b\n"],
    ["a line without a message", { ...line, msg: undefined, a: 1 }, "12:34:56.789 info   a=1\n"],
    ["an unknown level", { ...line, level: "harvest" }, "12:34:56.789 harvest listening\n"],
    ["a field with control and bidirectional characters", { ...line, subject: "\u001b[2J\u009b\u202e", reason: "a\nb" },
      '12:34:56.789 info  listening subject=\\u001b[2J\\u009b\\u202e reason="a\\nb"\n'],
  ],
)("toTerminalLine formats %s in columns", (_name, given, want) => {
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

test("toTerminalLine does not colour an empty column", () =>
  expect(toTerminalLine(JSON.stringify(line), true)).toMatch(/ listening\n$/));
