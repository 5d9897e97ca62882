import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import type { CompletedRequest } from "../../../gateway/src/index.ts";
import { createCallLog, type CallLogOptions } from "../../src/logs/call-log.ts";
import { problem } from "../../../gateway/src/protobuf/call-errors.ts";
import { isProbe } from "../../../gateway/src/health/probes.ts";
import { openLogLines } from "@protoport/testing/process";

function requestWith(changes: Partial<CompletedRequest>): CompletedRequest {
  // oxfmt-ignore
  return { procedure: "/orders.v1.OrderService/DeleteOrder", protocol: "rest", httpMethod: "DELETE", httpVersion: "1.1",
    scheme: "http", path: "/orders/7", httpRoute: "/orders/{id}", httpStatus: 204, error: undefined,
    durationMs: 1.23456, contextValues: createContextValues(), peer: { address: "127.0.0.1", port: 50_000 },
    ...changes };
}

const auditOf = (): ReturnType<CallLogOptions["auditOf"]> => ({ trail: "refusals", fields: { subject: "ops" } });

function linesOf(request: CompletedRequest): Record<string, unknown>[] {
  const { log, lines } = openLogLines("info");
  createCallLog({ log, auditOf })?.(request);
  return lines();
}

test("a call is logged as one line with all fields", () => {
  // oxfmt-ignore
  expect(linesOf(requestWith({}))).toEqual([{ level: "info", time: expect.any(String),
    requestId: expect.stringMatching(/^[0-9a-f]{16}-/), procedure: "/orders.v1.OrderService/DeleteOrder",
    protocol: "rest", httpMethod: "DELETE", path: "/orders/7", httpStatus: 204, code: "OK", durationMs: 1.235,
    subject: "ops", peer: "127.0.0.1", msg: "call" }]);
});

test("an error is logged with its code and its errorCode, if any", () => {
  const error = new ConnectError("no such order", Code.NotFound);
  const withErrorCode = Object.assign(error, { errorCode: "ERR_ORDER_NOT_FOUND" });
  const want = { code: "NotFound", errorCode: "ERR_ORDER_NOT_FOUND" };
  expect(linesOf(requestWith({ error: withErrorCode }))).toMatchObject([want]);
  for (const errorCode of [undefined, 7]) {
    const other = Object.assign(new ConnectError("no such order", Code.NotFound), { errorCode });
    expect(linesOf(requestWith({ error: other }))[0]).not.toHaveProperty("errorCode");
  }
});

test("an error is logged with the option that would accept the request", () => {
  const error = problem("ERR_BODY_TOO_LARGE", "the message is too large", { option: "readMaxBytes" });
  expect(linesOf(requestWith({ error }))).toMatchObject([{ option: "readMaxBytes" }]);
  expect(linesOf(requestWith({ error: problem("ERR_NO_ROUTE", "no route") }))[0]).not.toHaveProperty("option");
});

test.each([
  { name: "a probe", changes: { procedure: undefined, httpRoute: "/readyz" }, want: 0 },
  { name: "a health check over gRPC", changes: { procedure: "/grpc.health.v1.Health/Check" }, want: 0 },
  { name: "another endpoint", changes: { procedure: undefined, httpRoute: "/docs" }, want: 1 },
  { name: "an unknown path", changes: { procedure: undefined, httpRoute: undefined }, want: 1 },
  { name: "an RPC", changes: {}, want: 1 },
])("if isSilent is true for probes, $name gets $want log line(s)", ({ changes, want }) => {
  const { log, lines } = openLogLines("info");
  createCallLog({ log, auditOf, isSilent: isProbe })?.(requestWith(changes));
  expect(lines()).toHaveLength(want);
});

test("a failed probe is logged with a status and without a code", () => {
  const [line] = linesOf(requestWith({ procedure: undefined, httpMethod: "GET", path: "/readyz", httpStatus: 503 }));
  expect(line).toMatchObject({ path: "/readyz", httpStatus: 503 });
  expect(line).not.toHaveProperty("code");
});

test.each([
  { name: "a success", code: undefined, level: "info" },
  { name: "NOT_FOUND", code: Code.NotFound, level: "info" },
  { name: "UNAUTHENTICATED", code: Code.Unauthenticated, level: "info" },
  { name: "RESOURCE_EXHAUSTED", code: Code.ResourceExhausted, level: "warn" },
  { name: "UNAVAILABLE", code: Code.Unavailable, level: "warn" },
  { name: "DEADLINE_EXCEEDED", code: Code.DeadlineExceeded, level: "warn" },
  { name: "INTERNAL", code: Code.Internal, level: "error" },
  { name: "UNKNOWN", code: Code.Unknown, level: "error" },
])("$name is logged at the $level level", ({ code, level }) => {
  const error = code === undefined ? undefined : new ConnectError("no", code);
  expect(linesOf(requestWith({ error })).map((line) => line["level"])).toEqual([level]);
});

test("a long path is truncated", () =>
  expect(linesOf(requestWith({ path: `/${"x".repeat(8000)}` }))[0]?.["path"]).toHaveLength(256));

test("a call without a principal has no subject", () => {
  const { log, lines } = openLogLines("info");
  createCallLog({ log, auditOf: () => ({ trail: undefined, fields: {} }) })?.(requestWith({}));
  expect(lines()).toEqual([expect.not.objectContaining({ subject: expect.anything() })]);
});

test("createCallLog returns undefined if the level is silent", () =>
  expect(createCallLog({ log: openLogLines("silent").log, auditOf })).toBeUndefined());

test("a success is not logged if the level is warn", () => {
  const { log, lines } = openLogLines("warn");
  let calls = 0;
  createCallLog({ log, auditOf: () => ({ trail: "refusals", fields: { calls: (calls += 1) } }) })?.(requestWith({}));
  expect({ calls, lines: lines() }).toEqual({ calls: 0, lines: [] });
});

const none: readonly string[] = [];
const call: readonly string[] = ["call"];

test.each(
  // oxfmt-ignore
  [
    { name: "writes a refusal only to the audit log", level: "info", trail: "refusals", want: [none, call, none] },
    { name: "writes a deletion only to the deletion log", level: "info", trail: "deletions",
      want: [none, none, call] },
    { name: "writes any other call only to the main log", level: "info", trail: undefined, want: [call, none, none] },
    { name: "writes a refusal even if the main log's level is warn", level: "warn", trail: "refusals",
      want: [none, call, none] },
    { name: "writes a deletion even if the main log's level is warn", level: "warn", trail: "deletions",
      want: [none, none, call] },
    { name: "writes no other call if the main log's level is warn", level: "warn", trail: undefined,
      want: [none, none, none] },
    { name: "writes a deletion even if the main log is silent", level: "silent", trail: "deletions",
      want: [none, none, call] },
    { name: "writes a deletion even if main log and audit log are silent", level: "silent", refusals: "silent",
      trail: "deletions", want: [none, none, call] },
    { name: "writes a refusal even if main log and deletion log are silent", level: "silent", deletions: "silent",
      trail: "refusals", want: [none, call, none] },
    { name: "writes any other call even if audit log and deletion log are silent", level: "info", refusals: "silent",
      deletions: "silent", trail: undefined, want: [call, none, none] },
  ] as const,
)("a call log with audit log and deletion log $name", ({ level, trail, want, ...rest }) => {
  const refusals = "refusals" in rest ? rest.refusals : "info";
  const deletions = "deletions" in rest ? rest.deletions : "info";
  const [log, auditLog, deletionLog] = [openLogLines(level), openLogLines(refusals), openLogLines(deletions)];
  const logs = { log: log.log, auditLog: auditLog.log, deletionLog: deletionLog.log };
  createCallLog({ ...logs, auditOf: () => ({ trail, fields: {} }) })?.(requestWith({}));
  expect([log, auditLog, deletionLog].map(({ lines }) => lines().map(({ msg }) => msg))).toEqual(want);
});

test("a call log with audit log and deletion log writes a deletion to the audit log even if no deletion log is set", () => {
  const [log, auditLog] = [openLogLines("info"), openLogLines("info")];
  const audit = { trail: "deletions", fields: {} } as const;
  createCallLog({ log: log.log, auditLog: auditLog.log, auditOf: () => audit })?.(requestWith({}));
  expect([log.lines().length, auditLog.lines().length]).toEqual([0, 1]);
});

test("a call log with audit log and deletion log writes an audited call that failed with INTERNAL at the level error", () => {
  const log = openLogLines("error");
  const auditLog = openLogLines("info");
  const failed = requestWith({ error: new ConnectError("no", Code.Internal) });
  createCallLog({ log: log.log, auditLog: auditLog.log, auditOf })?.(failed);
  expect([log.lines(), auditLog.lines()]).toEqual([[], [expect.objectContaining({ level: "error" })]]);
});
