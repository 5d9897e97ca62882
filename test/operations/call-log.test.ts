import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { type Answer, callLog } from "../../src/operations/call-log.ts";
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

function linesOf(answer: Answer, auditOf: () => object = () => ({ subject: "ops" })): Record<string, unknown>[] {
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
  expect(linesOf(answerWith({}), () => ({}))[0]).not.toHaveProperty("subject");
});

test("at level silent there is nothing to call", () => {
  expect(callLog({ log: openLogLines("silent").log, auditOf: () => ({}) })).toBeUndefined();
});

test("at level warn a success leaves no line and is not even asked who called", () => {
  const { log, lines } = openLogLines("warn");
  let asked = 0;
  callLog({ log, auditOf: () => ({ asked: (asked += 1) }) })?.(answerWith({}));
  expect({ asked, lines: lines() }).toEqual({ asked: 0, lines: [] });
});
