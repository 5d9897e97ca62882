import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { type Answer, callLog, type CallLogOptions } from "../../src/operations/call-log.ts";
import { openLogLines } from "../support/log-lines.ts";

function answerWith(changes: Partial<Answer>): Answer {
  return {
    procedure: "/plantstore.v1.PlantService/DeletePlant",
    protocol: "rest",
    httpMethod: "DELETE",
    path: "/plants/7",
    httpStatus: 204,
    error: undefined,
    durationMs: 1.23456,
    contextValues: createContextValues(),
    peer: { address: "127.0.0.1" },
    ...changes,
  };
}

function auditOf(): ReturnType<CallLogOptions["auditOf"]> {
  return { isAudited: true, fields: { subject: "ops" } };
}

function linesOf(answer: Answer): Record<string, unknown>[] {
  const { log, lines } = openLogLines("info");
  callLog({ log, auditOf })?.(answer);
  return lines();
}

test("an answered call is one line with all that is known of it", () => {
  expect(linesOf(answerWith({}))).toEqual([
    {
      level: "info",
      time: expect.any(String),
      requestId: expect.stringMatching(/^[0-9a-f]{16}-/),
      procedure: "/plantstore.v1.PlantService/DeletePlant",
      protocol: "rest",
      httpMethod: "DELETE",
      path: "/plants/7",
      httpStatus: 204,
      code: "OK",
      durationMs: 1.235,
      subject: "ops",
      peer: "127.0.0.1",
      msg: "call",
    },
  ]);
});

test.each([
  { name: "a success", code: undefined, level: "info" },
  { name: "a plant that is not there", code: Code.NotFound, level: "info" },
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
  callLog({ log, auditOf: () => ({ isAudited: false, fields: {} }) })?.(answerWith({}));
  expect(lines()).toEqual([expect.not.objectContaining({ subject: expect.anything() })]);
});

test("at level silent there is nothing to call", () => {
  expect(callLog({ log: openLogLines("silent").log, auditOf })).toBeUndefined();
});

test("at level warn a success leaves no line and is not even asked who called", () => {
  const { log, lines } = openLogLines("warn");
  let asked = 0;
  callLog({ log, auditOf: () => ({ isAudited: true, fields: { asked: (asked += 1) } }) })?.(answerWith({}));
  expect({ asked, lines: lines() }).toEqual({ asked: 0, lines: [] });
});

const none: readonly string[] = [];

describe("with a log for the audit trail", () => {
  test.each([
    { name: "an audited call is a line there alone", level: "info", isAudited: true, lines: none, trail: ["call"] },
    { name: "any other call is a line of the log", level: "info", isAudited: false, lines: ["call"], trail: none },
    { name: "at warn an audited call is a line still", level: "warn", isAudited: true, lines: none, trail: ["call"] },
    { name: "at warn any other call is none", level: "warn", isAudited: false, lines: none, trail: none },
    {
      name: "at silent an audited call is a line still",
      level: "silent",
      isAudited: true,
      lines: none,
      trail: ["call"],
    },
  ] as const)("$name", ({ level, isAudited, lines, trail }) => {
    const log = openLogLines(level);
    const auditLog = openLogLines("info");
    callLog({ log: log.log, auditLog: auditLog.log, auditOf: () => ({ isAudited, fields: {} }) })?.(answerWith({}));
    expect(log.lines().map(({ msg }) => msg)).toEqual(lines);
    expect(auditLog.lines().map(({ msg }) => msg)).toEqual(trail);
  });

  test("a fault in an audited call keeps its level", () => {
    const log = openLogLines("error");
    const auditLog = openLogLines("info");
    callLog({ log: log.log, auditLog: auditLog.log, auditOf })?.(
      answerWith({ error: new ConnectError("no", Code.Internal) }),
    );
    expect([log.lines(), auditLog.lines()]).toEqual([[], [expect.objectContaining({ level: "error" })]]);
  });
});
