import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import type { AnsweredRequest } from "../../../src/gateway/index.ts";
import { httpAttributes, httpSeriesKey } from "../../../src/telemetry/metrics/request-attributes.ts";

const answered: AnsweredRequest = {
  procedure: undefined,
  protocol: "rest",
  httpMethod: "GET",
  path: "/",
  httpRoute: undefined,
  httpVersion: "1.1",
  scheme: "http",
  httpStatus: 200,
  error: undefined,
  durationMs: 1,
  contextValues: createContextValues(),
  peer: { address: "127.0.0.1", port: 1 },
};

const outcomes = [
  { name: "an answer", httpStatus: 200, code: undefined, want: undefined },
  { name: "a client that went away", httpStatus: 0, code: undefined, want: "canceled" },
  { name: "a client that cancelled", httpStatus: 0, code: Code.Canceled, want: "canceled" },
  { name: "an answer that could not be written", httpStatus: 0, code: Code.Internal, want: "internal" },
  { name: "a deadline that passed", httpStatus: 0, code: Code.DeadlineExceeded, want: "deadline_exceeded" },
  { name: "a fault of the server", httpStatus: 500, code: Code.Internal, want: "500" },
] as const;

function outcomeOf({ httpStatus, code }: (typeof outcomes)[number]): AnsweredRequest {
  return { ...answered, httpStatus, error: code === undefined ? undefined : new ConnectError("", code) };
}

test.each(outcomes)("$name has the error.type of its cause", (outcome) => {
  expect(httpAttributes(outcomeOf(outcome))["error.type"]).toBe(outcome.want);
});

test("two requests share a series exactly if their attributes are the same", () => {
  const requests = outcomes.flatMap((outcome) =>
    ["GET", "HEAD", "PATCH", "MINE", "YOURS"].flatMap((httpMethod) =>
      (["2.0", "1.1", "1.0", undefined] as const).flatMap((httpVersion) =>
        (["http", "https"] as const).map((scheme) => ({ ...outcomeOf(outcome), httpMethod, httpVersion, scheme })),
      ),
    ),
  );
  const keys = requests.map(httpSeriesKey);
  const shown = requests.map((request) => JSON.stringify(httpAttributes(request)));
  expect(new Map(keys.map((key, i) => [key, shown[i]])).size).toBe(new Set(shown).size);
  expect(new Set(keys).size).toBe(new Set(shown).size);
});
