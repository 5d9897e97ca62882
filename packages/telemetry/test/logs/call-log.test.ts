import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { AnsweredRequest } from "../../../gateway/src/index.ts";
import { createCallLog, type CallLogOptions } from "../../src/logs/call-log.ts";
import { isProbe } from "../../../gateway/src/health/probes.ts";
import { openLogLines } from "../../../testing/src/operations/log-lines.ts";

function answerWith(changes: Partial<AnsweredRequest>): AnsweredRequest {
  return {
    procedure: "/orders.v1.OrderService/DeleteOrder",
    protocol: "rest",
    httpMethod: "DELETE",
    httpVersion: "1.1",
    scheme: "http",
    path: "/orders/7",
    httpRoute: "/orders/{id}",
    httpStatus: 204,
    error: undefined,
    durationMs: 1.23456,
    contextValues: createContextValues(),
    peer: { address: "127.0.0.1", port: 50_000 },
    ...changes,
  };
}

function auditOf(): ReturnType<CallLogOptions["auditOf"]> {
  return { trail: "refusals", fields: { subject: "ops" } };
}

function linesOf(answer: AnsweredRequest): Record<string, unknown>[] {
  const { log, lines } = openLogLines("info");
  createCallLog({ log, auditOf })?.(answer);
  return lines();
}

test("an answered call is one line with all that is known of it", () => {
  expect(linesOf(answerWith({}))).toEqual([
    {
      level: "info",
      time: expect.any(String),
      requestId: expect.stringMatching(/^[0-9a-f]{16}-/),
      procedure: "/orders.v1.OrderService/DeleteOrder",
      protocol: "rest",
      httpMethod: "DELETE",
      path: "/orders/7",
      httpStatus: 204,
      code: "OK",
      durationMs: 1.235,
      subject: "ops",
      peer: "127.0.0.1",
      msg: "call",
    },
  ]);
});

test("an error is logged by its code and by its identifier, if it has one", () => {
  const known = Object.assign(new ConnectError("no such order", Code.NotFound), { errorCode: "ERR_ORDER_NOT_FOUND" });
  expect(linesOf(answerWith({ error: known }))).toMatchObject([{ code: "NotFound", errorCode: "ERR_ORDER_NOT_FOUND" }]);
  for (const errorCode of [undefined, 7]) {
    const other = Object.assign(new ConnectError("no such order", Code.NotFound), { errorCode });
    expect(linesOf(answerWith({ error: other }))[0]).not.toHaveProperty("errorCode");
  }
});

test.each([
  { name: "a probe", answer: { procedure: undefined, httpRoute: "/readyz" }, want: 0 },
  { name: "a health check over gRPC", answer: { procedure: "/grpc.health.v1.Health/Check" }, want: 0 },
  { name: "another endpoint", answer: { procedure: undefined, httpRoute: "/docs" }, want: 1 },
  { name: "a path where nothing is", answer: { procedure: undefined, httpRoute: undefined }, want: 1 },
  { name: "a call", answer: {}, want: 1 },
])("of $name there are $want lines where probes are left out", ({ answer, want }) => {
  const { log, lines } = openLogLines("info");
  createCallLog({ log, auditOf, isSilent: isProbe })?.(answerWith(answer));
  expect(lines()).toHaveLength(want);
});

test("a probe has a status and no code, so that one that fails does not say OK", () => {
  const [line] = linesOf(answerWith({ procedure: undefined, httpMethod: "GET", path: "/readyz", httpStatus: 503 }));
  expect(line).toMatchObject({ path: "/readyz", httpStatus: 503 });
  expect(line).not.toHaveProperty("code");
});

test.each([
  { name: "a success", code: undefined, level: "info" },
  { name: "an order that is not there", code: Code.NotFound, level: "info" },
  { name: "a refused credential", code: Code.Unauthenticated, level: "info" },
  { name: "a full queue", code: Code.ResourceExhausted, level: "warn" },
  { name: "a store that is away", code: Code.Unavailable, level: "warn" },
  { name: "a deadline that passed", code: Code.DeadlineExceeded, level: "warn" },
  { name: "a fault", code: Code.Internal, level: "error" },
  { name: "an error that nobody named", code: Code.Unknown, level: "error" },
])("$name is logged as $level", ({ code, level }) => {
  const error = code === undefined ? undefined : new ConnectError("no", code);
  expect(linesOf(answerWith({ error })).map((line) => line["level"])).toEqual([level]);
});

test("a long path is cut", () => {
  expect(linesOf(answerWith({ path: `/${"x".repeat(8000)}` }))[0]?.["path"]).toHaveLength(256);
});

test("a call of nobody has no subject", () => {
  const { log, lines } = openLogLines("info");
  createCallLog({ log, auditOf: () => ({ trail: undefined, fields: {} }) })?.(answerWith({}));
  expect(lines()).toEqual([expect.not.objectContaining({ subject: expect.anything() })]);
});

test("at level silent there is nothing to call", () => {
  expect(createCallLog({ log: openLogLines("silent").log, auditOf })).toBeUndefined();
});

test("at level warn a success leaves no line and is not even asked for its caller", () => {
  const { log, lines } = openLogLines("warn");
  let asked = 0;
  createCallLog({ log, auditOf: () => ({ trail: "refusals", fields: { asked: (asked += 1) } }) })?.(answerWith({}));
  expect({ asked, lines: lines() }).toEqual({ asked: 0, lines: [] });
});

const none: readonly string[] = [];
const call: readonly string[] = ["call"];

describe("with logs for the audit trail", () => {
  test.each([
    { name: "a refusal is a line there alone", level: "info", trail: "refusals", want: [none, call, none] },
    { name: "a deletion is a line there alone", level: "info", trail: "deletions", want: [none, none, call] },
    { name: "any other call is a line of the log", level: "info", trail: undefined, want: [call, none, none] },
    { name: "at warn a refusal is a line still", level: "warn", trail: "refusals", want: [none, call, none] },
    { name: "at warn a deletion is a line still", level: "warn", trail: "deletions", want: [none, none, call] },
    { name: "at warn any other call is none", level: "warn", trail: undefined, want: [none, none, none] },
    { name: "at silent a deletion is a line still", level: "silent", trail: "deletions", want: [none, none, call] },
    {
      name: "with refusals at silent too a deletion is a line still",
      level: "silent",
      refusals: "silent",
      trail: "deletions",
      want: [none, none, call],
    },
    {
      name: "with deletions at silent too a refusal is a line still",
      level: "silent",
      deletions: "silent",
      trail: "refusals",
      want: [none, call, none],
    },
    {
      name: "with the trails at silent any other call is a line still",
      level: "info",
      refusals: "silent",
      deletions: "silent",
      trail: undefined,
      want: [call, none, none],
    },
  ] as const)("$name", ({ level, trail, want, ...rest }) => {
    const refusals = "refusals" in rest ? rest.refusals : "info";
    const deletions = "deletions" in rest ? rest.deletions : "info";
    const [log, auditLog, deletionLog] = [openLogLines(level), openLogLines(refusals), openLogLines(deletions)];
    createCallLog({
      log: log.log,
      auditLog: auditLog.log,
      deletionLog: deletionLog.log,
      auditOf: () => ({ trail, fields: {} }),
    })?.(answerWith({}));
    expect([log, auditLog, deletionLog].map(({ lines }) => lines().map(({ msg }) => msg))).toEqual(want);
  });

  test("deletions are lines of the audit log where they have none of their own", () => {
    const [log, auditLog] = [openLogLines("info"), openLogLines("info")];
    createCallLog({ log: log.log, auditLog: auditLog.log, auditOf: () => ({ trail: "deletions", fields: {} }) })?.(
      answerWith({}),
    );
    expect([log.lines().length, auditLog.lines().length]).toEqual([0, 1]);
  });

  test("a fault in an audited call keeps its level", () => {
    const log = openLogLines("error");
    const auditLog = openLogLines("info");
    createCallLog({ log: log.log, auditLog: auditLog.log, auditOf })?.(
      answerWith({ error: new ConnectError("no", Code.Internal) }),
    );
    expect([log.lines(), auditLog.lines()]).toEqual([[], [expect.objectContaining({ level: "error" })]]);
  });
});
